"""Italian. The kinds are those of `refdesk.kit.phrases.Kind`."""

GREETING = """
    buongiorno|buon giorno|buonasera|buona sera|buon pomeriggio|salve|ciao(?: a tutti)?|gentile (?:cliente|signor\\p{L}*|team)
    grazie(?: mille| tante| infinite)?(?: per (?:averci|avermi|il|la|l'|le|i) ?\\p{L}+(?: \\p{L}+)?)?
"""
ASSENT = """
    va bene|d'accordo|ok|okay|sì|certo|certamente|perfetto|ottimo|bene|benissimo|capito|nessun problema|ah|allora|ecco|volentieri|molto bene
"""
CIVIL = """
    (?:mille |molte |tante )?grazie\\b…
    (?:la |ti |vi )?ringrazio…
    (?:no )?(?:è tutto|questo è tutto|nient'altro|basta così)…
    prego…|di niente…|di nulla…|si figuri…|è un piacere…|è stato un piacere…|a (?:lei|te)
    (?:le auguro |ti auguro |auguro )?(?:una )?buona (?:giornata|serata|continuazione)…
    (?:buon (?:weekend|lavoro|fine settimana|pomeriggio))…|buona (?:giornata|serata)…
    arrivederci…|a presto…|(?:cordiali|distinti) saluti…
    (?:un (?:attimo|momento|secondo|minuto|attimino)|resti in (?:linea|attesa)|attenda)…
    mi (?:dia|lasci) (?:un (?:attimo|momento|minuto|secondo))…
    (?:mi dispiace|ci dispiace|mi scuso|ci scusiamo|scusi|scusa|chiedo scusa|mi spiace)\\b…
    (?:capisco|comprendo|vedo)(?: (?:il suo|la sua|bene) ?\\p{L}*)?
    (?:controllo|verifico|guardo)(?: subito| ora)?
    (?:sono |siamo )?(?:content[oaie]|felice|felici|liet[oaie])\\b…|mi fa piacere…|bene così
    (?:perfetto|ottimo|fantastico|benissimo|va bene|ok|capito|d'accordo|certo|sì|no|eccellente|bene)
    (?:mi chiamo|il mio nome è|sono) \\[name[ \\d]*\\]…
    (?:ho bisogno di|mi serve) (?:un )?aiuto
    non esiti…|spero (?:che|di)…|resto (?:in attesa|a disposizione)…
"""
OFFERING = """
    (?:come|in cosa|in che modo) (?:posso|possiamo) …(?:aiutar\\p{L}*|esser\\p{L}*)
    (?:benvenut[oaie]) (?:in|su|al|da|a)…
    cosa posso fare per (?:lei|te)
    la aiuto (?:subito|volentieri)
"""
CLOSING = """
    (?:posso|possiamo|c'è|ha|serve) …(?:altro|ancora|altre domande)…
    (?:se ha|se hai|per|in caso di) …(?:altre|altro|ulteriori|domande|dubbi|bisogno)…
    buona (?:giornata|serata|continuazione)|arrivederci|a presto
    non esiti a (?:contattar\\p{L}*|scriver\\p{L}*|ricontattar\\p{L}*)
"""
REPAIR = """
    non ho (?:capito|compreso)
    (?:può|potrebbe|puoi) (?:ripetere|riformulare|chiarire)
"""
WORKED = """
    (?:ora|adesso|finalmente|tutto|ora sì che) (?:sì )?(?:funziona|va|parte|stampa|si accende|si connette|è a posto|si apre|riesco)\\b…
    (?:funziona|va|riparte) (?:tutto|ora|adesso|bene|benissimo|perfettamente|di nuovo|alla grande)
    (?:ha|così ha|questo ha|hanno) (?:tutto )?(?:funzionato|risolto|aiutato)
    (?:è|tutto|problema) (?:ora |stato )?(?:risolto|a posto|sistemato)
    (?:si è|l'ho) (?:risolto|sistemato|risolta)
    ^(?:risolto|funziona|sistemato|fatto,? funziona)
    (?:sono|siamo) (?:di nuovo )?(?:dentro|online|conness[oi]|riuscit[oa] ad accedere)
"""
GONE = """
    (?:non (?:appare|compare|esce|c'è|ci sono|vedo|dà|mi dà|si blocca)) più…
    (?:nessun|nessuna) (?:errore|problema|messaggio) (?:più|ora|adesso)
    (?:l'errore|il problema|il messaggio) è (?:sparito|scomparso)
"""
NEGATION = """
    non|nessun[oa]?|nulla|niente|mai|ancora|neanche|nemmeno|purtroppo
"""
FAILED = """
    (?:ancora|sempre|tuttora) (?:non|niente|nulla|nessun\\p{L}*|lo stesso|la stessa|bloccat\\p{L}*|spent\\p{L}*|rosso|uguale)
    niente da fare|(?:è|va|resta|rimane) (?:ancora|sempre) (?:lent|ferm|rott|bloccat|spent|offline|in errore|così)\\p{L}*
    (?:continua|continuano) a (?:non|dare|uscire|apparire|comparire|bloccarsi|lampeggiare)…
    (?:non|niente) (?:\\p{L}+ )?(?:ha|è|hanno) (?:purtroppo )?(?:funzionato|aiutato|risolto|cambiato|servito|servita|cambiata)
    (?:non è (?:servito|cambiato)(?: a)? (?:niente|nulla)?)
    ^(?:no,? |purtroppo,? |niente,? )*(?:non|questo non|così non) (?:funziona|va|cambia|serve|parte|risolve)\\b
    (?:nessun|senza) (?:cambiamento|effetto|risultato|miglioramento|successo|differenza)
    (?:lo|la|gli|le) stess[oaie] (?:errore|messaggio|problema|cosa|risultato|identico)
    ^(?:stesso|stessa) (?:errore|messaggio|problema|cosa)
    non (?:succede|cambia) (?:niente|nulla)
"""
UNSOLVED = """
    non (?:mi )?(?:funziona|va|parte)\\b(?! più male)
    non (?:è |ho |avete |ancora )*(?:risolto|sistemato|stato utile|stata utile)
    perdita di tempo|pessim[oa]\\p{L}*|disdico
"""
ORDER = """
    ^(?:e |poi |dopo |ora |quindi |allora |adesso |prima |per prima cosa,? |per favore,? |invece,? |piuttosto,? )*(?!può|ha|vuole|mi\\b|attenda|scusi|grazie|abbia pazienza|non|nessun|prego|sono|questa|questo|ecco|la|le|una|come|dove|quando|perché|quale|anche|salve|però|cosa|allora)(?:riavvi|spen|accend|scolleg|collega|colleg|apr|chiud|vad|clicc|prem|selezion|scriv|inser|aggiorn|install|disinstall|disattiv|attiv|cancell|elimin|camb|prov|controll|verific|scaric|mett|teng|rimuov|usi|utilizz|copi|invi|acced|ripristin|effettu|facc|torn|stacch|attacc|rilasc|tolg|svuot|impost|tocc|esegu|imposti|tenga|fai|vai|apri|riprov|lasc|tent)\\p{L}{0,6}\\b
    ^(?:e |poi |dopo |ora |quindi |prima |per favore,? )*(?:deve|dovrebbe|bisogna|occorre|provi a|cerchi di|si assicuri (?:di|che)) \\p{L}+
    (?:può|potrebbe|puoi|potresti) (?:per favore |per cortesia |anche |ora |quindi )*(?:riavviare|spegnere|accendere|scollegare|collegare|aprire|chiudere|andare|cliccare|premere|selezionare|inserire|aggiornare|installare|disinstallare|disattivare|attivare|cancellare|eliminare|cambiare|provare|controllare|verificare|scaricare|mettere|rimuovere|accedere|fare|staccare|svuotare|riprovare)\\p{L}*
    ^(?:se|quando|appena) [^,]{3,80}, (?:allora |per favore |deve )*\\p{L}{2,}(?:i|a|are|ere|ire)\\b
    ^(?:e |poi |dopo |ora |quindi |allora |prima |per favore,? )*(?!nella|della|quella|questa|anche|oggi|domani|ogni|alla|dalla|sulla|ecco|resta|rimane|sembra|risulta|funziona|basta|manca|costa|grazie|prima|senza|sopra|tutti|molti|nostra|vostra)\\p{L}{4,}(?:a|i|la|lo|li) (?:il|lo|la|i|gli|le|l'|un|una|un'|dal|dalla|nel|nella|su|sul|sulla|di nuovo|con) ?
"""
FORBIDDEN = """
    ^(?:per favore,? |e )?non (?:lo |la |li |le )?(?!esiti|si preoccupi|ti preoccupare|è|ho|ha|c'è|ci|si|mi|posso|sono|può)\\p{L}{3,}(?:i|a|are|ere|ire)\\b
"""
REPORT = """
    ^(?:fatto,? |ecco,? |bene,? |ora |adesso |le |ti |gliel')*(?:ho|abbiamo) (?:appena |ora |già |provveduto a )?(?!visto|capito|bisogno|ricevuto|una)\\p{L}+(?:ato|uto|ito|sto|tto|rso|so|are|ere|ire)\\b
    ^(?:il suo|la sua|i suoi|le sue|il|la|il tuo|la tua) …(?:è stat[oaie]|sono stat[ie]|ora è) …\\p{L}+[oaie]$
"""
QUESTION = """
    (?:quale?|quali|qual è|come|quando|dove|chi|perché|quant[oaie]|da quando|che cosa|che|a quale)\\b…\\?$
    (?:mi )?(?:può|potrebbe|puoi|potresti) (?:per favore |per cortesia |gentilmente )*(?:indicar|dar|dir|confermar|fornir|mandar|inviar|comunicar|descriver)\\p{L}*
    ^(?:per favore,? )?(?:mi (?:dia|dica|indichi|confermi|fornisca|mandi|invii|comunichi|dai|dici)|ci (?:dia|indichi|fornisca|comunichi)|(?:ho|abbiamo|avrei|avremmo) bisogno (?:del|della|dei|di)|mi serve|mi servirebbe|mi serviranno)
"""
AGREES = """
    ^(?:sì|si,|certo|ok|okay|va bene|d'accordo|perfetto|grazie|esatto|giusto|corretto|ottimo|benissimo|fatto|volentieri|confermo)
"""
DECLINES = """
    ^(?:no\\b|non ancora|purtroppo no)
"""
REFUSES = """
    non (?:lo |la |ce |me |li )?(?:so|ho|l'ho|ricordo|trovo|posso)|nessuna idea|(?:l'ho|ho) (?:perso|persa|dimenticato|dimenticata)
"""
MENDED = """
    lasci(?:a)? (?:stare|perdere)|(?:ho|l'ho) (?:poi )?(?:risolto|trovato|capito|sistemato) (?:da sol[oa]|io|il problema|la soluzione|la causa|l'errore)
    come non detto|alla fine (?:ho|era|l'ho)|ho risolto
"""
TAKEN_BACK = """
    ^(?:scusi,? |scusa,? |mi scusi,? |oh,? |no,? |aspetti,? |mi dispiace,? |pardon,? )*(?:era|questo è|quello era|ciò che ho detto (?:era|è)|quanto detto (?:era|è)|quello che (?:le |ti )?ho detto (?:era|è)) (?:sbagliato|un errore|errato|scorretto|non corretto)
    mi (?:sono|ero) (?:sbagliat[oa]|confus[oa])|(?:errore|sbaglio) mio|mio errore|^(?:correzione|rettifico|mi correggo)
    (?:ignori|dimentichi|ignora|dimentica|non tenga conto di|lasci stare) (?:quello|quanto|ciò|il mio|l'ultimo|la mia)…
"""
HANDED_OVER = """
    (?:la |ti |lo )?(?:trasferisco|passo|inoltro|metto in contatto)…
    (?:responsabile|supervisore|secondo livello|reparto tecnico|escalation)
"""
WISH = """
    non|errore|problema|guasto|vorrei|voglio|ho bisogno|come|perché|bloccat[oa]|perso|dimenticat[oa]|sbagliat[oa]
"""
