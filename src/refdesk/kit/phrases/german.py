"""German. The kinds are those of `refdesk.kit.phrases.Kind`."""

GREETING = """
    hallo(?: zusammen| liebes \\p{L}+| \\p{L}+-?team)?
    guten (?:morgen|tag|abend)
    moin(?: moin)?
    servus|grüezi|grüß gott|schönen guten (?:morgen|tag|abend)
    sehr geehrte(?:r|s)? (?:damen und herren|frau|herr)(?: \\[name[ \\d]*\\])?
    liebe(?:r|s)? (?:\\p{L}+-?team|\\[name[ \\d]*\\])
    (?:vielen |herzlichen |besten )dank(?: für \\p{L}+ (?:\\p{L}+ )?(?:nachricht|anfrage|meldung|antwort|hilfe|geduld))?
    danke(?: schön| sehr| dir| ihnen)?(?: für \\p{L}+ (?:\\p{L}+ )?(?:nachricht|anfrage|meldung|antwort|hilfe|geduld))?
"""
ASSENT = """
    okay|ok|ja|nein|doch|gut|super|prima|perfekt|alles klar|gerne|klar|na klar|natürlich|selbstverständlich|ach|hm+|tja
    kein problem(?! mehr)
    kein ding
"""
CIVIL = """
    (?:vielen|herzlichen|besten|tausend|lieben) dank…
    danke\\b…
    bitte(?: schön| sehr)?
    (?:sehr )?gern(?:e)?(?: geschehen)?
    (?:nein |nee )?(?:das war(?:'s| es)?(?: schon| auch)?(?: alles)?|das ist alles|mehr nicht|sonst nichts)(?: für heute)?
    (?:mit )?(?:freundlichen|besten|herzlichen|lieben|schönen|viele|beste|liebe|herzliche) grüße?n?…
    (?:lg|mfg|vg)…
    (?:einen )?(?:schönen|angenehmen) (?:tag|abend|feierabend)…
    (?:ein )?schönes wochenende…
    schönen tag noch…
    auf wiedersehen…|tschüss?…|bis bald…
    (?:einen|kleinen) (?:kleinen )?(?:moment|augenblick)(?: bitte)?…
    moment(?: bitte| mal)?
    (?:das )?(?:tut mir|tut uns) (?:sehr |wirklich )?leid…
    (?:ich |wir )?(?:bitte|entschuldige|entschuldigen|bitten)… (?:entschuldigung|unannehmlichkeiten|umstände)…
    entschuldigung…|verzeihung|sorry(?: (?:für|wegen|dass)…)?
    (?:das )?freut (?:mich|uns)…
    (?:es )?freut (?:mich|uns)…
    (?:ich )?(?:schaue|prüfe|sehe|schau|seh) (?:das |mir das |es |mal |kurz |gleich |gerade )+(?:an|nach|mal|kurz)?
    (?:das )?(?:verstehe|versteh) (?:ich)?
    (?:super|prima|toll|klasse|perfekt|wunderbar|sehr gut|alles klar|okay|ok|top|spitze|gut|in ordnung|ja|nein)
    (?:ja|gerne|klar)(?:,)? (?:mache ich|mach ich)
    (?:ich )?warte(?: kurz| solange)?…
    (?:mein name ist|ich heiße|ich bin(?: die| der)?) \\[name[ \\d]*\\]…
    (?:ich )?(?:brauche|bräuchte) (?:mal )?(?:bitte )?(?:ihre |eure |deine )?hilfe
    (?:ich )?hoffe,? (?:es geht|ihnen|dir|sie)…
    zögern sie nicht…
"""
OFFERING = """
    (?:wie|womit|wobei) (?:kann|darf|können|dürfen) (?:ich|wir) (?:ihnen|dir|euch)?…(?:helfen|behilflich|weiterhelfen|dienen)
    was (?:kann|darf) ich (?:heute )?für (?:sie|dich) tun
    (?:sehr )?gern(?:e)? (?:helfe|unterstütze|bin) ich…
    willkommen (?:bei|beim|im)…
    (?:ich )?(?:helfe|helf) (?:ihnen|dir) (?:gerne?|da gerne?|gleich)…
"""
CLOSING = """
    (?:kann|darf) ich (?:ihnen |dir )?(?:sonst|noch)…(?:helfen|tun|behilflich)
    (?:haben sie|hast du|gibt es) (?:sonst )?noch (?:weitere )?(?:fragen|etwas|was)…
    sonst noch (?:etwas|fragen|was)
    (?:falls|wenn|sollten|bei) …(?:weitere|noch) …(?:fragen|hilfe|probleme)…
    (?:schönen|angenehmen) (?:tag|abend|feierabend)
    schönes wochenende
    melden sie sich (?:gerne?|jederzeit|einfach|bitte gerne?)…
    auf wiedersehen|tschüss?
"""
REPAIR = """
    (?:das )?habe ich (?:leider )?nicht (?:ganz )?verstanden
    (?:können|könnten) sie das (?:bitte )?(?:noch ?mal|anders)
"""
WORKED = """
    (?:jetzt|nun|wieder|alles) (?:geht|funktioniert|klappt|läuft|druckt|lädt|startet)…
    (?:geht|funktioniert|klappt|läuft|druckt|startet) (?:es |das |alles |ja |auch )*(?:jetzt|nun|wieder|einwandfrei|problemlos|prima|super)
    hat (?:es |das |alles |jetzt |sofort |prima |super |gut |tatsächlich |wirklich )*(?:geholfen|funktioniert|geklappt)
    (?:ist|wurde|wäre) (?:es |das |damit |somit |jetzt |nun |alles |hiermit )*(?:behoben|gelöst|erledigt)
    problem (?:ist )?(?:damit |nun |jetzt )?(?:gelöst|behoben)
    das war(?:'s| es| die lösung)
    ^(?:gelöst|erledigt|behoben|funktioniert|geht|klappt|läuft)$
    (?:jetzt|wieder) (?:ist |bin |sind )?(?:ich |wir )?(?:wieder )?(?:drin|da|online|verbunden|in ordnung|grün)
    (?:hat sich|hätte sich) (?:damit |somit |schon )?erledigt
"""
GONE = """
    kein(?:e|en)? (?:fehler|fehlermeldung|problem|probleme|meldung|fehlercode) mehr
    (?:fehler|meldung|problem|fehlermeldung) (?:ist )?(?:jetzt |nun )?(?:weg|verschwunden)
    (?:kommt|erscheint) (?:jetzt )?(?:nicht|kein\\p{L}*) …mehr
"""
NEGATION = """
    nicht|nichts|kein\\p{L}*|nie|weder|ohne erfolg|trotzdem|leider
"""
FAILED = """
    (?:immer )?noch (?:immer )?(?:nicht|kein\\p{L}*|das ?selbe|das gleiche|die gleiche|die ?selbe|der gleiche|der ?selbe)
    (?:weiterhin|nach wie vor|trotzdem) (?:nicht|kein\\p{L}*|das ?selbe|die gleiche|der gleiche|rot|offline)
    immer noch(?! am warten| hier| da\\b| nicht dazu)
    (?:hat|haben) (?:es |das |mir |uns |leider |auch |aber |alles |gar |überhaupt )*(?:nicht|nichts) (?:geholfen|funktioniert|geklappt|gebracht|geändert)
    (?:bringt|brachte|hilft|half|ändert|änderte) (?:leider |auch |aber |gar |überhaupt )*(?:nichts?|nicht)
    ^(?:das |es )?(?:geht|funktioniert|klappt) (?:leider |auch |aber |so )*nicht
    (?:keine|ohne) (?:änderung|besserung|veränderung|erfolg|wirkung)
    (?:der|die|das) (?:gleiche|selbe)\\p{L}* (?:fehler|meldung|problem|fehlermeldung)
    (?:derselbe|dieselbe|dasselbe|gleicher|gleiche|gleiches|selber|selbes) (?:fehler|meldung|problem|fehlermeldung|ergebnis)
    (?:passiert|tut sich) (?:leider |immer noch |weiterhin )*nichts
"""
UNSOLVED = """
    (?:geht|funktioniert|klappt|läuft) (?:leider |aber |immer |noch |gar |überhaupt |das |es |so )*nicht
    nicht (?:gelöst|behoben|hilfreich|geholfen|weitergeholfen)
    zeitverschwendung|unverschämt\\p{L}*|frechheit
    (?:dann )?(?:kündige|gebe|lasse) ich (?:es|das|auf)
"""
ORDER = """
    ^(?:dann |danach |nun |jetzt |anschließend |zuerst |als (?:erstes|nächstes) |und |stattdessen )*bitte (?!entschuldig|um\\b|nicht\\b|warten|haben sie (?:etwas|einen moment)|beachten)\\p{L}+
    ^(?:dann |danach |nun |jetzt |anschließend |zuerst |als (?:erstes|nächstes) |und |stattdessen |am besten )*(?!haben|sind|können|könnten|wollen|möchten|werden|würden|sehen|wissen|kennen|meinen|bekommen|erhalten|nutzen|benutzen|warten|entschuldigen|hätten|brauchen|dürften|zögern)\\p{L}{3,}e?n sie\\b(?!\\p{L}* ?\\?)
    (?:können|könnten|würden) sie (?:bitte |mal |einmal |kurz |dazu |dann |das |den |die )+…(?:en|eln|ern)\\??$
    ^(?:dann |danach |nun |jetzt |als nächstes )*(?:klick|geh|öffne|drück|starte|prüf|zieh|steck|schalt|wähl|lade|gib|trag|lösch|aktualisier|melde|setz|installier|halt|leg|stell|trenn|probier|versuch|mach|nimm)e?\\b
    sie (?:müssen|müssten|sollten|sollen) (?!mir|uns)…(?:en|eln|ern)$
    ^(?:wenn|falls|sollte|sobald) [^,]{3,80}, (?:dann |bitte |so )*(?!können|haben|werden)\\p{L}{3,}e?n (?:sie )?\\b
"""
FORBIDDEN = """
    ^bitte …\\b(?:nicht|kein\\p{L}*)\\b
    ^\\p{L}{3,}e?n sie …\\b(?:nicht|keinesfalls|kein\\p{L}*)\\b
"""
REPORT = """
    ^(?:so,? |jetzt |nun |gerade |soeben )*(?:ich habe|wir haben|ich hab|habe|hab) (?!gesehen|verstanden|leider|keine?|eine frage|noch)…\\b(?:ge\\p{L}+|ver\\p{L}+|be\\p{L}+|er\\p{L}+|zurück\\p{L}+|\\p{L}+iert|\\p{L}+ge\\p{L}+)
    ^(?:ihr|ihre|ihren|der|die|das|dein|deine) …(?:wurde|wurden|ist jetzt|ist nun) …(?:ge\\p{L}+|ver\\p{L}+|be\\p{L}+|\\p{L}+iert|\\p{L}+ge\\p{L}+)$
"""
QUESTION = """
    ^(?:und |dann |darf ich fragen,? )*(?:welche[rsmn]?|wie|was|wann|wo|wer|warum|womit|wofür|seit wann|ab wann|um welche[ns]?|bei welche[rmn]|auf welche[rmn])\\b…\\?$
    ^(?:haben|hatten|sind|nutzen|verwenden|benutzen|sehen|leuchtet|blinkt|ist|erscheint|kommt|tritt|besteht|funktioniert|möchten|wollen|wären|hast|bist|siehst|nutzt) …\\?$
    (?:nennen|geben|sagen|schicken|senden|teilen|bestätigen|beschreiben|verraten) sie (?:mir|uns)
    (?:können|könnten|würden|dürfte|darf|kann|könntest|kannst) (?:sie|ich|du) (?:mir|uns|bitte|kurz|noch|einmal|mal|ihre|ihren|um|die|den|das| )*…(?:nennen|geben|sagen|schicken|senden|mitteilen|bestätigen|beschreiben|durchgeben|haben|bitten|verraten|erfahren)\\b
    ^(?:ich |wir |dafür |dazu |dann |zur (?:prüfung|sicherheit) )*(?:brauche|bräuchte|benötige|benötigen|brauchen) (?:ich |wir |noch |bitte |dann |dafür |nur )*(?:ihre|ihren|die|den|eine|einen|deine|deinen)
"""
AGREES = """
    ^(?:ja|jawohl|gerne?|klar|ok|okay|super|prima|danke|vielen dank|perfekt|genau|stimmt|richtig|in ordnung|alles klar|passt|gut|toll|das stimmt)
"""
DECLINES = """
    ^(?:nein|nee|nö|eher nicht|leider nein|leider nicht)
"""
REFUSES = """
    (?:weiß|weiss) ich (?:leider |gerade |gar )*nicht|keine ahnung|(?:habe|hab|finde) (?:ich )?(?:leider |gerade |die |den |das |sie )*(?:nicht|keine?)(?: mehr)?|nicht (?:mehr )?(?:zur hand|da|parat)
"""
MENDED = """
    hat sich (?:schon |bereits |inzwischen |gerade |mittlerweile )*erledigt
    (?:habe|hab) (?:es |das |den fehler |die lösung |das problem |die ursache )*(?:inzwischen |gerade |schon |doch |jetzt |nun )*(?:selbst|selber) (?:gelöst|gefunden|hinbekommen|behoben|herausgefunden|geschafft|rausgefunden)
    (?:habe|hab) (?:den fehler|die lösung|das problem|die ursache|es) (?:inzwischen |gerade |schon |doch |jetzt |nun )*(?:gefunden|rausgefunden|herausgefunden)
    (?:ach )?vergessen sie(?:'s| es| das)
    (?:es )?lag (?:wohl |offenbar |einfach |nur )*(?:am|an der|an dem|daran)
"""
TAKEN_BACK = """
    ^(?:oh,? |sorry,? |entschuldigung,? |moment,? |halt,? |ach,? |nein,? |upps,? )*(?:das|da|dies) war (?:leider |wohl |so )*(?:falsch|ein (?:fehler|irrtum)|nicht richtig|nicht korrekt|mein fehler|die falsche \\p{L}+|der falsche \\p{L}+)
    (?:da )?habe ich mich (?:leider |wohl )?(?:geirrt|vertan|verlesen|getäuscht)
    ^(?:mein fehler|kommando zurück|korrektur|das stimmt (?:so |leider |doch )*nicht|da lag ich falsch)
    vergessen sie (?:bitte )?(?:das|meine letzte|meinen letzten|was ich)…
    (?:ignorieren|streichen) sie (?:bitte )?(?:das|meine letzte|meinen letzten|was ich)…
"""
HANDED_OVER = """
    (?:leite|gebe|reiche) (?:ich )?(?:sie|das|ihr \\p{L}+|ihre \\p{L}+|die \\p{L}+|den \\p{L}+|es) …(?:weiter|an (?:den|die|das|einen|eine|unser\\p{L}*) )
    (?:weitergeleitet|eskalier\\p{L}*|second[ -]?level|fachabteilung|vorgesetzte\\p{L}*|teamleit\\p{L}*)
    verbinde (?:ich )?sie…
"""
WISH = """
    nicht|kein\\p{L}*|fehler\\p{L}*|problem\\p{L}*|defekt|kaputt|falsch\\p{L}*|möchte|brauche|wie (?:kann|geht|bekomme)|warum|seit|kann ich|gesperrt|verloren|vergessen|stürzt
"""
