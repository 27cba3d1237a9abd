"""The function words of each language: too common to discriminate between documents, but they tell languages apart.

Question words and forms of address are among them, since in questions they say nothing about what is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping

FUNCTION_WORDS: Mapping[str, str] = {
    "ar": """
        في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم أن إن كان كانت لا ما لم لن قد كل بعد قبل
        بين أو ثم كيف متى أين لماذا هل أنا نحن أنت عند حتى إذا لكن أي غير
    """,
    "ca": """
        el la els les un una uns unes de del dels al als a amb en per i o que què com quan on qui quin quina
        quins és són era està estan ser ha han hi no ni si més molt el seu la seva els seus aquest aquesta
        aquests aquestes això però perquè també fins sense sobre entre des ho li em et es meu meva
    """,
    "cs": """
        a i o u v ve z ze s se si k ke na do od po pro při pod nad před za mezi bez přes je jsou byl byla bylo
        byly být jsem jsme jste není nejsou ten ta to ti ty tento tato toto tyto tím toho tomu který která
        které kteří jak kdy kde kdo co proč jaký jaká jaké zda že ale nebo ani aby když pokud jako také už jen
        může mohu můžete lze mám můj moje svůj jeho její jejich
    """,
    "da": """
        en et den det de der som at og eller men i på til af fra med for om ved under over efter før mellem
        uden er var være bliver blev har havde kan kunne skal skulle vil ville må jeg du han hun vi mig dig
        sig min mit mine din dit dine sin sit sine vores jeres deres hans hendes denne dette disse ikke ingen
        nogen noget hvad hvordan hvornår hvor hvorfor hvem hvilken hvilket hvilke hvis når så også kun meget
        mere fordi
    """,
    "de": """
        der die das den dem des ein eine einer eines einem einen und oder aber als auch auf aus bei beim bis
        durch für gegen in im ins mit nach ohne um unter von vom vor wegen zu zum zur über an am ist sind war
        waren wird werden wurde wurden sein hat haben hatte hatten kann können könnte konnte muss müssen soll
        sollen will wollen darf dürfen möchte ich du er sie es wir ihr mich mir dich dir ihn ihm uns euch sich
        mein meine meinen meiner meinem dein deine unser unsere ihre ihren ihrem ihrer seine seinen seinem
        seiner dieser diese dieses diesen diesem jeder jede jedes kein keine keinen nicht noch nur schon so
        sehr mehr dass wenn weil ob wie was wer wo wann warum wieso woher wohin welche welcher welches welchen
        welchem wen wem wessen man hier dort da dann also ja nein bitte
    """,
    "el": """
        ο η το οι τα του της των τον την τους τις ένας μια ένα και ή αλλά σε στο στη στην στον στα στους στις
        με για από προς χωρίς μεταξύ πριν μετά να θα που πως ότι αν είναι ήταν έχει έχουν έχω δεν μην όχι πώς
        πότε πού ποιος ποια ποιο τι γιατί αυτό αυτή αυτός αυτά μου σου μας σας όπως πιο πολύ μπορώ μπορεί
    """,
    "es": """
        el la lo los las un una unos unas de del al a y e o u en con por para sin sobre entre hasta desde que
        qué como cómo cuando cuándo donde dónde adónde quien quién quiénes cual cuál cuáles cuanto cuánto
        cuánta cuántos cuántas es son era eran fue fueron ser sido está están estaba ha han he había hay se su
        sus le les me mi mis te tu tus nos nuestro nuestra no ni si sí más muy ya este esta estos estas ese
        esa eso esto esos esas aquel también pero porque puede pueden puedo tiene tienen tengo tenía hace hizo
        otro otra otros otras todo toda todos todas usted ustedes
    """,
    "et": """
        ja või aga ning et kui ka on oli olid ei ole pole see need selle seda sellest kes mis mida millal kus
        kuidas miks mina sina tema meie teie nad ma sa ta me te mu minu oma siis veel juba ainult väga üle all
        pärast enne ilma koos jaoks kas saab saan peab
    """,
    "eu": """
        eta edo baina ez bai da dira zen ziren du dute zuen zuten hau hori hura hauek horiek bat batzuk nola
        noiz non nor zer zergatik zein ni zu gu bere nire zure gure ere baino bezala arte gabe gainean dago
        daude egin izan behar ahal
    """,
    "fi": """
        ja tai mutta sekä että jos kun niin kuin myös on ovat oli olivat olla ole ei eivät en et emme ette se
        ne tämä tämän tätä nämä näiden tuo sen sitä siitä siinä joka jotka jonka jota jossa mikä mitä mistä
        missä milloin miten miksi kuka ketä kenen minä sinä hän me te he minun sinun hänen heidän voi voivat
        voin voiko pitää täytyy vain vielä jo hyvin ilman kanssa jälkeen ennen välillä mukaan
    """,
    "fr": """
        le la les l un une des de du d au aux et ou où à en dans par pour sur sous avec sans entre chez que
        qui quoi dont qu quel quelle quels quelles comment quand pourquoi combien est sont était étaient été
        être a ont avait avoir ai ce cet cette ces cela ça c il elle ils elles on nous vous je j tu me m te t
        se s sa son ses leur leurs mon ma mes notre nos votre vos y ne n pas plus moins très si comme mais
        donc peut peuvent puis fait faire tout toute tous toutes même aussi lorsque afin
    """,
    "hi": """
        का की के को में से पर ने और या है हैं था थे थी हो कि यह वह ये वे इस उस जो तो भी नहीं मैं हम आप तुम
        मेरा मेरे मेरी अपने अपना क्या कैसे कब कहाँ क्यों कौन कर करें करने लिए साथ बाद एक कोई कुछ सकते सकता
    """,
    "hu": """
        a az egy és vagy de hogy ha is nem ne van vannak volt voltak lesz lehet ez ezt ennek ebben azt annak
        abban akkor amely amelyek ami aki akik mint már még csak meg el fel ki be le én te ő mi ti ők engem
        téged minden nagyon hogyan mikor hol miért mit mi ki kit melyik hány után előtt alatt között nélkül
        szerint számára kell tud tudom
    """,
    "hy": """
        և ու կամ բայց է են էր էին եմ ես եք ենք մեջ համար հետ մի այս այդ այն որ որը ինչ ինչպես երբ որտեղ ինչու
        ով իմ քո մեր ձեր նրա չի չեն
    """,
    "id": """
        yang dan atau di ke dari pada untuk dengan oleh dalam tidak bukan ini itu adalah akan telah sudah bisa
        dapat harus saya aku kamu anda kami kita mereka dia apa apakah bagaimana kapan mana mengapa siapa juga
        karena jika kalau seperti sebagai lebih sangat ada para tersebut
    """,
    "it": """
        il lo la i gli le un uno una di del dello della dei degli delle a al allo alla ai agli alle da dal
        dallo dalla dai dagli dalle in nel nello nella nei negli nelle con su sul sullo sulla sui sugli sulle
        per tra fra e ed o od ma che chi cui come quando dove perché perchè quale quali quanto quanta quanti
        quante cosa è sono era erano fu essere stato stata ha hanno ho aveva avere si non né se più molto
        anche questo questa questi queste quello quella quelli mio mia miei mie suo sua suoi sue tuo tua
        nostro nostra io tu lui lei noi voi loro mi ti ci vi ne può possono posso deve devono fare fa già
        ancora
    """,
    "lt": """
        ir ar arba bet kad jei jeigu kai kaip kur kada kodėl kas ką kuris kuri kurie yra buvo būti nėra ne
        taip šis ši šie šios tas ta tai tie to aš tu jis ji mes jūs jie mano savo jo jos į iš su be prie per
        po apie už nuo iki dėl pagal tarp dar jau tik labai gali galima reikia
    """,
    "ne": """
        र वा छ छन् थियो थिए हो होइन यो त्यो यी ती को का की ले लाई मा बाट सँग पनि तर कि म हामी तपाईं मेरो आफ्नो
        के कसरी कहिले कहाँ किन कुन गर्न गर्ने भने
    """,
    "nl": """
        de het een en of maar van in op aan bij met voor door over onder tussen tegen naar uit om tot zonder
        na sinds te is zijn was waren wordt worden werd werden ben bent heeft hebben had hadden kan kunnen kon
        moet moeten zal zullen zou wil willen mag ik jij je u hij zij ze wij we jullie hen hun mij me mijn
        jouw uw zich onze ons deze dit die dat er niet geen nog ook al wel zeer meer als dan toen omdat hoe
        wat wie waar wanneer waarom welke welk hier daar
    """,
    "no": """
        en ei et den det de som at og eller men i på til av fra med for om ved under over etter før mellom
        uten er var være blir ble har hadde kan kunne skal skulle vil ville må jeg du han hun vi oss meg deg
        seg min mitt mine din ditt dine sin sitt sine vår deres hans hennes denne dette disse ikke ingen noen
        noe hva hvordan når hvor hvorfor hvem hvilken hvilket hvilke hvis så også bare veldig mer fordi
    """,
    "pl": """
        i a o w we z ze na do od po pod nad przed za między bez przez dla przy u jest są był była było były
        być nie ten ta to ci te tego tej tych tym który która które którzy jak kiedy gdzie kto co dlaczego czy
        jaki jaka jakie że ale lub albo oraz aby gdy jeśli jako także już tylko może mogę można mam mój moja
        moje swój jego jej ich się mnie mi
    """,
    "pt": """
        o a os as um uma uns umas de do da dos das em no na nos nas ao à aos às por pelo pela pelos pelas para
        com sem sobre entre até desde e ou mas que qual quais quem como quando onde quanto quanta quantos
        quantas porque é são era eram foi foram ser sido está estão estava tem têm tinha há ter eu tu ele ela
        nós vocês eles elas você me te se lhe meu minha meus minhas seu sua seus suas nosso nossa este esta
        estes estas esse essa isso isto aquele não nem sim mais muito já também só pode podem posso fazer faz
    """,
    "ro": """
        și sau dar că ca să de la în din pe cu pentru prin fără sub între până după este sunt era erau fi fost
        are au am avea nu un o unui unei cel cea cei cele al a ai ale acest această acești aceste acesta
        aceasta care ce cine cum când unde cât câte mai foarte doar deja dacă eu tu el ea noi voi ei ele mă te
        se îmi meu mea lui lor poate pot
    """,
    "ru": """
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее её мне было
        вот от меня еще ещё нет о об из ему когда где даже ну ли если уже или быть был была были до вас мы они
        для при это эта этот эти этого этой этом кто чем чего почему зачем сколько какой какая какие какое
        который которая которые которого можно может могут нужно мой моя мои свой также через после без под
        над между
    """,
    "sr": """
        и у на је су да се за од са не што шта који која које како када где зашто ко али или ако био била било
        бити сам смо сте ово овај ова то тај та мој своје његов њихов може могу треба без након пре између као
        већ само i u na je su da se za od sa ne što šta koji koja koje kako kada gde zašto ko ali ili ako bio
        bila bilo biti sam smo ste ovo ovaj ova to taj moj svoje njegov njihov može mogu treba bez nakon pre
        između kao već samo
    """,
    "sv": """
        en ett den det de som att och eller men i på till av från med för om vid under över efter före mellan
        utan är var vara blir blev har hade kan kunde ska skall skulle vill ville måste jag du han hon vi oss
        mig dig sig min mitt mina din ditt dina sin sitt sina vår er deras hans hennes denna detta dessa inte
        ingen någon något några vad hur när var varför vem vilken vilket vilka så också bara mycket mer
        eftersom
    """,
    "ta": """
        ஒரு இந்த அந்த என்று மற்றும் என்ன எப்படி எப்போது எங்கே ஏன் யார் இது அது நான் நாம் நீங்கள் அவர் உள்ளது
        இல்லை வேண்டும் முடியும் போது பற்றி
    """,
    "tr": """
        ve veya ya da de ile için gibi kadar sonra önce göre bir bu şu o bunlar ben sen biz siz onlar benim
        senin onun bizim sizin mi mı mu mü ne nasıl neden niçin nerede nereden nereye zaman kim hangi kaç
        değil var yok olan olarak oldu olduğu çok daha en her ama ancak eğer ise ki çünkü hem sadece
    """,
}
"""By ISO 639-1 code. English is not among them: see `refdesk.core.search.analysis`."""
