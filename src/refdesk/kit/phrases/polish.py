"""Polish. The kinds are those of `refdesk.kit.phrases.Kind`."""

GREETING = """
    dzień dobry(?: (?:pani|panu|państwu))?|dobry wieczór|witam(?: serdecznie)?|cześć|hej|szanown[ya](?: \\p{L}+)?|szanowni państwo
    (?:bardzo |serdecznie )?(?:dziękuję|dziękujemy|dzięki)(?: (?:bardzo|serdecznie))?(?: za (?:kontakt|wiadomość|zgłoszenie|odpowiedź|informację|cierpliwość|pomoc))?
"""
ASSENT = """
    ok|okej|dobrze|tak|nie ma sprawy|nie ma problemu|jasne|oczywiście|rozumiem|świetnie|super|w porządku|pewnie|no|ach|dobra|już|aha|proszę bardzo|doskonale
"""
CIVIL = """
    (?:bardzo |serdecznie |wielkie )?(?:dziękuję|dziękujemy|dzięki|dziekuje)\\b…
    (?:nie )?(?:to (?:już )?wszystko|nic więcej)…
    proszę(?: bardzo)?|nie ma (?:za co|sprawy|problemu)…|cała przyjemność…|polecam się…
    (?:życzę |życzymy )?(?:miłego|dobrego|udanego|przyjemnego) (?:dnia|wieczoru|weekendu|popołudnia)…|wzajemnie…
    (?:do (?:widzenia|usłyszenia|zobaczenia)|pa pa|na razie)…|(?:z poważaniem|pozdrawiam|serdecznie pozdrawiam|pozdrawiamy)…
    (?:chwileczkę|chwilkę|momencik|moment|chwila|sekundkę|minutkę)(?: proszę)?…|(?:proszę|prosze) (?:o chwilę|chwilę|chwilkę|zaczekać|poczekać)…|czekam…
    (?:bardzo )?(?:przepraszam|przepraszamy|przykro mi|przykro nam)\\b…
    (?:rozumiem|sprawdzam|już sprawdzam|zaraz sprawdzę|sprawdzę|zobaczę)(?: to| pana| pani)?…
    (?:bardzo )?(?:cieszę|cieszymy) się…|miło (?:mi|to|nam)…
    (?:świetnie|super|doskonale|dobrze|ok|okej|w porządku|jasne|rozumiem|tak|nie|znakomicie|rewelacja)
    (?:nazywam się|mam na imię|z tej strony) \\[name[ \\d]*\\]…
    (?:potrzebuję|proszę o) pomoc[yą]?
    (?:mam|mamy) nadzieję…|(?:proszę )?śmiało…
"""
OFFERING = """
    (?:w czym|jak|czym) (?:mogę|możemy) …(?:pomóc|służyć)
    witamy (?:w|na)…
    co mogę dla (?:pana|pani|państwa|ciebie) zrobić
    (?:już |chętnie )(?:pomagam|pomogę)
"""
CLOSING = """
    czy (?:mogę|możemy|jest|są|potrzebuje|ma) …(?:jeszcze|inne|inny)…
    (?:coś|w czymś) jeszcze|jeszcze (?:w czymś|jakoś|coś)
    (?:w razie|jeśli|jeżeli|gdyby) …(?:pytań|pytania|pomocy|wątpliwości|problemów)…
    (?:miłego|dobrego|udanego|przyjemnego) (?:dnia|wieczoru|weekendu|popołudnia)|do (?:widzenia|usłyszenia)
"""
REPAIR = """
    nie (?:do końca )?(?:zrozumiałem|zrozumiałam|rozumiem)
    (?:czy )?(?:może|mógłby|mogłaby) (?:pan|pani) (?:powtórzyć|doprecyzować)
"""
WORKED = """
    (?:teraz|już|wreszcie|wszystko|w końcu|nareszcie) (?:już |mi |się |wszystko )*(?:działa|działają|drukuje|ładuje|włącza|otwiera|poszło|gra|jest ok|jest dobrze|mogę|mam|świeci|łączy)\\b…
    (?:działa|działają) (?:już|teraz|wszystko|dobrze|poprawnie|świetnie|bez problemu|znowu|znów|jak należy)
    (?:to |bardzo )?(?:pomogło|zadziałało|podziałało)
    (?:problem )?(?:został |jest |już )*(?:rozwiązany|rozwiązane|naprawione|naprawiony)
    udało się|^(?:działa|rozwiązane|naprawione|pomogło|zadziałało)
    (?:znowu|znów|ponownie) (?:mam|działa|jestem)…
"""
GONE = """
    (?:już )?nie (?:ma|wyskakuje|pojawia|wyświetla|pokazuje|zrywa|zacina)(?: się)? (?:już )?(?:błędu|błędów|komunikatu|problemu|się)?$
    (?:błąd|komunikat|problem) (?:już )?(?:zniknął|znikł)
"""
NEGATION = """
    nie|nic|nadal|wciąż|nigdy|żaden|żadn\\p{L}+|dalej|niestety|bez zmian
"""
FAILED = """
    (?:nadal|wciąż|dalej|ciągle) (?!czekam|jestem tu)\\p{L}+
    (?:to )?(?:też |niestety |też niestety |nic |niczego |wcale |również )*nie (?:pomogło|pomaga|zadziałało|działa|podziałało|zmieniło|dało|przyniosło|rozwiązało)
    nic (?:to |się |mi )*nie (?:dało|zmieniło|pomogło|dzieje|daje)
    (?:bez|brak|żadnej|żadnych) (?:zmian|zmiany|efektu|skutku|rezultatu|poprawy|powodzenia)
    (?:ten|taki|to) sam[oa]? (?:błąd|komunikat|problem|wynik)
    ^(?:to samo|ten sam)
"""
UNSOLVED = """
    nie (?:działa|działają|rozwiązan\\p{L}+|pomogło|pomogliście|zadziałało)
    strata czasu|beznadziejn\\p{L}+|rezygnuję
"""
ORDER = """
    ^(?:i |a |następnie |potem |teraz |najpierw |wtedy |w takim razie |zamiast tego |to )*(?:proszę|prosze) (?:teraz |najpierw |też |jeszcze |również |następnie |ponownie |to )*(?!o\\b|mi\\b|nam\\b|podać|powiedzieć|bardzo|chwil|poczekać|zaczekać|pani|pana|się nie|nie\\b|wysłać mi|napisać mi)(?:spróbować )?\\p{L}+(?:ć|c|cie)\\b
    ^(?:i |a |następnie |potem |teraz |najpierw |wtedy |zamiast tego |po prostu )*(?:uruchom|kliknij|otwórz|wejdź|naciśnij|wyłącz|włącz|odłącz|podłącz|wybierz|wpisz|usuń|zainstaluj|zaktualizuj|zaloguj|wyloguj|pobierz|przytrzymaj|spróbuj|sprawdź|zamknij|zmień|ustaw|użyj|połącz|zresetuj|przejdź|zaznacz|wyczyść|odczekaj|kup|zrób|zapisz|wyjmij|włóż|skasuj|odinstaluj)(?:cie)?\\b
    (?:czy )?(?:może|mógłby|mogłaby) (?:pan|pani) (?:proszę |teraz |spróbować |jeszcze )*(?:uruchomić|zrestartować|zresetować|kliknąć|otworzyć|wejść|nacisnąć|wyłączyć|włączyć|odłączyć|podłączyć|wybrać|wpisać|usunąć|zainstalować|zaktualizować|zalogować|pobrać|sprawdzić|zamknąć|zmienić|wyczyścić|przejść)
    (?:należy|trzeba|musi pan|musi pani|powinien pan|powinna pani|wystarczy) (?:też |teraz |tylko )*\\p{L}+(?:ć|c)\\b
    ^(?:jeśli|jeżeli|gdy|kiedy) [^,]{3,80}, (?:to |wtedy )?(?:proszę )?\\p{L}+(?:ć|c|ij|nij|ź|cz|rz)\\b
"""
FORBIDDEN = """
    ^(?:i |ale )?(?:proszę )?(?:niczego |tego )?nie \\p{L}+(?:ć|c|aj|uj|ij|wiaj)\\b
"""
REPORT = """
    ^(?:już |gotowe,? |właśnie |teraz )*(?:\\p{L}{3,}(?:łem|łam|liśmy))\\b(?!…\\?)
    ^(?:pana|pani|państwa|twoje|twój) …(?:został|została|zostało|zostały|jest już) …\\p{L}+$
"""
QUESTION = """
    (?:jaki|jaka|jakie|jak|kiedy|gdzie|kto|dlaczego|ile|co|czy|który|która|które|od kiedy|na jaki|jakiego|jakiej)\\b…\\?$
    (?:proszę|prosze|czy mogę prosić|poproszę|mogę prosić) (?:bardzo )?(?:o (?:podanie|numer|adres|imię|pesel|nip|kod|przesłanie|potwierdzenie|login|dane)|mi \\p{L}+ć|nam \\p{L}+ć|podać|powiedzieć|potwierdzić|napisać)
    ^(?:potrzebuję|będę potrzebował|będę potrzebowała|potrzebny będzie|podaj|podajcie) …
    (?:może|mógłby|mogłaby|czy) (?:pan|pani) (?:mi |nam |może |proszę )*(?:podać|powiedzieć|potwierdzić|przesłać|opisać)
"""
AGREES = """
    ^(?:tak|jasne|ok|okej|dobrze|oczywiście|zgadza się|dziękuję|dzięki|świetnie|super|w porządku|pewnie|zrobione|gotowe|dokładnie)
"""
DECLINES = """
    ^(?:nie\\b|jeszcze nie|niestety nie)
"""
REFUSES = """
    nie (?:wiem|mam|pamiętam|znam|mogę|znalazłem|znalazłam)|nie mam pojęcia|(?:zgubiłem|zgubiłam|zapomniałem|zapomniałam)
"""
MENDED = """
    (?:już )?nieważne|(?:już |sam |sama )+(?:znalazłem|znalazłam|naprawiłem|naprawiłam|rozwiązałem|rozwiązałam|sobie poradziłem|sobie poradziłam|poradziłem|poradziłam)
    okazało się|(?:znalazłem|znalazłam) (?:przyczynę|rozwiązanie|problem)|(?:poradziłem|poradziłam) sobie|udało mi się samemu
"""
TAKEN_BACK = """
    ^(?:przepraszam,? |oj,? |ojej,? |chwila,? |nie,? |moment,? |ups,? )*(?:to|ta (?:informacja|rada|wskazówka)|moja (?:rada|wskazówka)) (?:było|był|była|jest|nie było|nie jest) (?:błędn\\p{L}+|błąd|mój błąd|pomyłka|zł\\p{L}+|nieprawd\\p{L}+|niepoprawn\\p{L}+|prawidłow\\p{L}+)
    pomyliłem się|pomyliłam się|mój błąd|moja pomyłka|^(?:korekta|sprostowanie)
    proszę (?:zignorować|zapomnieć|nie brać pod uwagę)…
"""
HANDED_OVER = """
    (?:przekazuję|przekażę|przełączam|przełączę|łączę|eskaluję)…(?:do|pana|panią|z|sprawę|zgłoszenie)…
    (?:przełożon\\p{L}+|kierownik\\p{L}*|drugiej linii|działu technicznego|specjalist\\p{L}+)
"""
WISH = """
    nie|błąd|problem|awaria|chcę|chciałbym|chciałabym|potrzebuję|jak|dlaczego|od wczoraj|zablokowan\\p{L}+|zgubiłem|zapomniałem|zepsut\\p{L}+
"""
