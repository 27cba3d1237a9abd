"""Dutch. The kinds are those of `refdesk.kit.phrases.Kind`."""

GREETING = """
    hallo(?: allemaal| daar)?|hoi|hey|goede(?:morgen|middag|navond|dag)|goeden? (?:morgen|middag|avond|dag)|dag|beste(?: \\p{L}+)?|geachte(?: heer| mevrouw| \\p{L}+)?
    (?:hartelijk |heel erg )?(?:bedankt|dank u(?: wel)?|dank je(?: wel)?|dankjewel|dankuwel)(?: voor (?:uw|je|het) \\p{L}+(?: \\p{L}+)?)?
"""
ASSENT = """
    ok|oké|okay|ja|jazeker|nee|prima|goed|top|perfect|natuurlijk|uiteraard|zeker|geen probleem|duidelijk|helder|super|ah|nou|akkoord|helemaal goed|fijn
"""
CIVIL = """
    (?:hartelijk |heel erg |nogmaals |alvast |super )?(?:bedankt|dank u|dank je|dankjewel|dankuwel|dank)\\b…
    (?:nee )?(?:dat was (?:het|alles)|dat is alles|nee hoor|verder niets?)…
    graag gedaan…|geen dank…|tot (?:uw|je) dienst…|met plezier…
    (?:nog )?(?:een )?(?:fijne|prettige|goede|leuke) (?:dag|avond|middag|weekend|dag verder)…|(?:fijn|prettig|goed) weekend…
    (?:met )?(?:vriendelijke|hartelijke) groet(?:en)?…|groet(?:en|jes)?…|mvg…
    tot ziens…|doei…|tot (?:snel|later|gauw)…
    (?:een|één|heel even|een klein) (?:moment|ogenblik|momentje)(?: geduld)?…|moment(?:je)?(?: geduld)?…|even geduld…|blijf aan de lijn…
    (?:het )?(?:spijt|spijt het) (?:me|mij|ons)…|(?:mijn |onze )?excuses…|sorry(?: (?:hoor|voor|dat)…)?|wat vervelend…
    (?:ik )?(?:begrijp|snap|kijk|check)(?: het| dat| even| voor u| voor je| wat u bedoelt)*
    (?:ik )?(?:ga|zal) (?:het|dat|even|dit)(?: even| voor u| voor je)*(?: nakijken| bekijken| controleren| checken| kijken)
    (?:fijn|mooi|gelukkig|goed)(?: (?:om te horen|zo|dat het))?…|(?:blij|graag)…
    (?:prima|perfect|top|super|oké|ok|duidelijk|akkoord|helemaal goed|ja|nee|geweldig|mooi|goed)
    (?:mijn naam is|ik ben|ik heet) \\[name[ \\d]*\\]…
    (?:ik )?(?:heb|kan) (?:even )?(?:hulp|uw hulp)(?: nodig)?
    aarzel niet…|ik hoop…
"""
OFFERING = """
    (?:waarmee|hoe|waar) (?:kan|kunnen|mag) (?:ik|wij|we) …(?:helpen|van dienst|mee helpen)
    welkom bij…
    wat kan ik voor (?:u|je) (?:doen|betekenen)
    (?:ik )?(?:help|ga) (?:u|je) (?:graag|daar graag)…
"""
CLOSING = """
    (?:kan|kunnen|mag) (?:ik|wij|we) …(?:nog|verder|anders)…
    (?:heeft|heb) (?:u|je) (?:nog|verder) …(?:vragen|vraag|iets)
    verder nog (?:iets|vragen)|nog iets anders
    (?:als|mocht|bij|indien) …(?:nog|verdere|meer|andere) …(?:vragen|hulp|problemen)…
    (?:fijne|prettige|goede) (?:dag|avond|middag)|(?:fijn|prettig|goed) weekend|tot ziens
"""
REPAIR = """
    (?:ik )?(?:begrijp|begreep|snap) (?:het|u|je|dat) (?:niet|niet helemaal)
    (?:kunt|kun) (?:u|je) dat (?:herhalen|anders)
"""
WORKED = """
    (?:nu|eindelijk|alles|hij|het|dat|die|ie) (?:nu )?(?:doet|werkt|werkte|gaat|lukt|print|start|hielp|laadt)\\b(?: (?:het|hij|ie|weer|nu|wel|goed|alles|gelukkig|prima|perfect))*
    (?:doet|werkt|gaat|lukt) (?:het |hij |ie |alles )*(?:nu|weer|goed|prima|perfect|gelukkig|eindelijk)
    (?:heeft|is) (?:het |dat |dit |goed )*(?:geholpen|gewerkt|gelukt|opgelost|verholpen)
    (?:opgelost|verholpen|gelukt)$|^(?:opgelost|gelukt|werkt)
    probleem (?:is )?(?:opgelost|verholpen)
    (?:ben|zijn) (?:ik |we )?(?:weer )?(?:binnen|online|ingelogd|verbonden)
"""
GONE = """
    geen (?:fout|foutmelding|melding|probleem|problemen|storing) meer
    (?:fout|melding|foutmelding|probleem|het \\p{L}+) is (?:nu |eindelijk )?(?:weg|verdwenen)
    (?:krijg|zie) (?:ik )?(?:de |het |die )?(?:fout|melding|foutmelding) niet meer
"""
NEGATION = """
    niet|niks|niets|geen|nooit|nog steeds|helaas
"""
FAILED = """
    (?:nog steeds|nog altijd)(?! bezig| aan het wachten)
    nog (?:niet|geen|niks)
    (?:heeft|hielp|helpt|werkt|werkte|deed|doet) (?:het |dat |dit |mij |me |helaas |ook |echt |jammer genoeg )*(?:niet|niks|niets)(?: (?:geholpen|gewerkt|opgeleverd|veranderd|opgelost))?(?: helaas| jammer genoeg)?$
    (?:heeft|is) (?:het |dat |dit |mij |me |helaas |ook |echt )*(?:niet|niks|niets) (?:geholpen|gewerkt|opgeleverd|veranderd|opgelost|gelukt)
    ^(?:nee,? |helaas,? )*(?:dat|dit|het|hij) (?:werkt|lukt|helpt|doet het|gaat) (?:helaas |ook |nog )*niet
    (?:geen|zonder) (?:verandering|verschil|effect|succes|resultaat|verbetering)
    (?:de|het|dezelfde|hetzelfde) ?(?:zelfde )?(?:fout|foutmelding|melding|probleem|resultaat)$
    (?:dezelfde|hetzelfde)\\b…
    (?:er )?(?:gebeurt|verandert) (?:nog )?(?:niks|niets)
"""
UNSOLVED = """
    (?:werkt|doet het|lukt|gaat) (?:het |nog |helaas |ook |gewoon )*niet
    niet (?:opgelost|verholpen|geholpen|nuttig)
    tijdverspilling|waardeloos|zeg (?:ik )?(?:mijn|het) …op
"""
ORDER = """
    ^(?:en |dan |daarna |vervolgens |nu |eerst |in plaats daarvan |ten eerste |a\\.?u\\.?b\\.? |graag )*(?:start|herstart|klik|ga|open|druk|trek|haal|steek|zet|schakel|kies|selecteer|vul|typ|voer|verwijder|wis|installeer|update|werk|log|meld|download|houd|hou|probeer|controleer|check|kijk|sluit|koppel|maak|stel|gebruik|verbind|reset|tik|laat|wacht|zoek|vink|sla|neem|plaats|leeg|vernieuw|ontkoppel|activeer|deactiveer|scan|stuur de|wijzig|bel)\\b(?! (?:mij|me|u|ik)\\b)
    (?:kunt|kun|zou|wilt|wil) (?:u|je) (?:alstublieft |a\\.?u\\.?b\\.? |eens |even |de |het |dan |eerst )*(?!mij|me|ons)…(?:en|eren|ten|an|aan|zien)\\??$
    (?:u|je) (?:moet|kunt|dient|hoeft alleen|zou moeten) (?!mij|me)…(?:en|eren|an|aan)$
    ^(?:als|wanneer|zodra) [^,]{3,80}, (?:dan |graag )*(?!heeft|kunt|is|heb)\\p{L}{2,} (?:dan )?(?:de|het|op|naar|u|uw|je|een|dan|in|uit|even)\\b
"""
FORBIDDEN = """
    ^(?:start|herstart|klik|ga|open|druk|trek|zet|schakel|kies|verwijder|wis|installeer|update|log|reset|gebruik|doe|sluit)\\b…\\b(?:niet|geen|nooit)\\b
"""
REPORT = """
    ^(?:zo,? |oké,? |nu |net |zojuist )*(?:ik heb|wij hebben|we hebben|heb) (?!gezien|een vraag|begrepen|nog|nodig)…\\b(?:ge\\p{L}+|ver\\p{L}+|be\\p{L}+|her\\p{L}+|aange\\p{L}+|op\\p{L}*ge\\p{L}+|terug\\p{L}+|door\\p{L}+|toege\\p{L}+|uitge\\p{L}+)
    ^(?:uw|je|de|het) …(?:is nu|is|zijn|werd) …(?:ge\\p{L}+|ver\\p{L}+|her\\p{L}+|aange\\p{L}+|terug\\p{L}+)$
"""
QUESTION = """
    (?:welke?|wat|hoe|wanneer|waar|wie|waarom|hoeveel|sinds wanneer|op welke?)\\b…\\?$
    ^(?:heeft|heb|bent|ben|ziet|zie|gebruikt|gebruik|brandt|knippert|is|krijgt|krijg|werkt|wilt|wil|staat) (?:u|je|het|de|er|dat|uw)\\b…\\?$
    (?:kunt|kun|mag|zou|wilt|kan) (?:u|je|ik) (?:mij|me|ons|alstublieft |even |uw|de|het|om| )*…(?:geven|doorgeven|sturen|vertellen|bevestigen|noemen|laten weten|hebben|omschrijven|zeggen|vragen)\\b
    ^(?:geef|stuur|vertel|noem|bevestig|laat) (?:mij|me|ons|alstublieft|uw|je|even)\\b
    ^(?:ik|wij|we|dan|daarvoor|hiervoor) (?:heb|hebben) (?:ik |wij |we |nog |wel |graag )*(?:uw|het|de|je|een) …nodig
"""
AGREES = """
    ^(?:ja|jazeker|jawel|graag|ok|oké|okay|prima|bedankt|dank|perfect|klopt|juist|goed|akkoord|zeker|top|gedaan|dat klopt)
"""
DECLINES = """
    ^(?:nee|neen|nog niet|helaas niet)
"""
REFUSES = """
    (?:weet|heb|vind|herinner) (?:ik )?(?:het |dat |die |me |hem |de |helaas )*(?:niet|geen)|geen idee|(?:kwijt|vergeten)
"""
MENDED = """
    laat maar|(?:al |zelf |inmiddels |intussen )+(?:opgelost|gevonden|gelukt|gefikst|gerepareerd)
    (?:ik )?(?:heb|had) (?:het |de oorzaak |de oplossing |het probleem )?(?:al |zelf |inmiddels |intussen )*(?:gevonden|opgelost|ontdekt)
    (?:het )?(?:lag|bleek) (?:toch |gewoon |achteraf )?(?:aan|dat)
"""
TAKEN_BACK = """
    ^(?:sorry,? |excuses,? |oh,? |oeps,? |wacht,? |nee,? |pardon,? )*(?:dat|dit) (?:was|is|klopt) (?:helaas |toch |eigenlijk )*(?:fout|verkeerd|onjuist|niet juist|niet goed|niet|een fout|een vergissing|de verkeerde \\p{L}+|mijn fout)$
    (?:ik (?:heb me|had het|vergis me)) (?:vergist|mis|verkeerd)?|mijn fout|foutje van mij|^(?:correctie|rectificatie)
    (?:vergeet|negeer) (?:wat|dat|mijn|het)…
"""
HANDED_OVER = """
    (?:verbind|zet|stuur|geef) (?:ik )?(?:u|je|het|dit|uw \\p{L}+) …(?:door|over)…
    (?:leidinggevende|supervisor|tweede lijn|technische dienst|geëscaleerd|doorverbind\\p{L}*|doorgestuurd)
"""
WISH = """
    niet|geen|fout|probleem|kapot|storing|wil|graag|nodig|hoe|waarom|sinds|vergeten|kwijt|geblokkeerd|verkeerd\\p{L}*
"""
