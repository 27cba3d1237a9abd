"""French. The kinds are those of `refdesk.kit.phrases.Kind`."""

GREETING = """
    bonjour(?: madame| monsieur| à (?:tous|vous)| l'équipe)?
    bonsoir(?: madame| monsieur)?
    salut|coucou|cher client|chère cliente|madame, monsieur
    merci(?: beaucoup| bien| à vous| d'avance)?(?: (?:pour|de) (?:votre|vos|nous avoir|m'avoir|ta) \\p{L}+)?
"""
ASSENT = """
    d'accord|ok|okay|oui|non|bien sûr|bien|très bien|parfait|super|génial|entendu|pas de (?:souci|problème)|ah|alors|eh bien|bon|certainement|voilà
"""
CIVIL = """
    (?:un grand |mille |encore )?merci\\b…
    je vous (?:en prie|remercie)…
    (?:non )?(?:c'est|ce sera) tout(?: pour (?:moi|le moment))?
    de rien…|avec plaisir…|il n'y a pas de quoi
    (?:bonne|excellente|belle) (?:journée|soirée|fin de journée|continuation)…
    bon (?:week-?end|après-midi)…
    au revoir…|à bientôt…
    (?:bien )?cordialement…|(?:bien à vous|sincères salutations|meilleures salutations)…
    (?:un (?:instant|moment|petit instant)|une (?:minute|seconde|petite minute))…
    patientez…|(?:merci de|veuillez) patienter…|je (?:reste|patiente)…
    (?:je suis |nous sommes )?(?:vraiment |sincèrement )?désolée?s?(?: (?:de|pour|d')…)?
    (?:toutes )?(?:mes|nos|je vous présente mes|je m') ?excuse[sz]?…
    (?:je |nous )?(?:comprends|comprenons|vois|regarde|vérifie)(?: ça| cela| tout de suite| votre frustration)?
    je (?:vais )?(?:regarde|vérifie|regarder|vérifier) (?:ça|cela|tout de suite)…
    (?:je suis |nous sommes )?(?:ravie?s?|content|contente|heureux|heureuse)\\b…
    (?:super|parfait|génial|très bien|d'accord|excellent|nickel|top|entendu|c'est noté|ok|oui|non|c'est parfait|tant mieux)
    (?:je m'appelle|mon nom est|moi c'est|c'est) \\[name[ \\d]*\\]…
    j'ai (?:juste )?besoin d'aide
    n'hésitez pas…
    j'espère que…
"""
OFFERING = """
    (?:comment|en quoi) (?:puis-je|pouvons-nous|je peux|est-ce que je peux) …(?:aider|vous être utile)
    que puis-je faire pour vous
    bienvenue (?:chez|au|sur|à)…
    je (?:vais|peux) vous aider
"""
CLOSING = """
    (?:puis-je|est-ce que je peux|pouvons-nous) …(?:autre chose|encore)…
    (?:avez-vous|as-tu) (?:encore )?d'autres (?:questions|demandes)
    (?:autre chose|d'autres questions)
    (?:si vous avez|pour toute|en cas de) …(?:question|questions|besoin|aide)…
    (?:bonne|excellente|belle) (?:journée|soirée|fin de journée|continuation)
    bon week-?end|au revoir|à bientôt
    n'hésitez pas (?:à (?:nous |me )?(?:recontacter|contacter|revenir))…
"""
REPAIR = """
    je n'ai pas (?:bien )?compris
    (?:pouvez|pourriez)-vous (?:répéter|reformuler)
"""
WORKED = """
    (?:ça|cela|ca|tout|elle|il|l'imprimante|l'application) (?:re)?(?:marche|fonctionne|va)(?: de nouveau| à nouveau| bien| mieux| maintenant| enfin| parfaitement| très bien| nickel)*
    (?:re)?(?:marche|fonctionne) (?:de nouveau|à nouveau|bien|mieux|maintenant|enfin|parfaitement|très bien|nickel|impeccable)
    (?:maintenant|enfin) (?:ça|cela|tout|elle|il) (?:re)?(?:marche|fonctionne|va)
    (?:ça|cela|ca|tout) a (?:bien |enfin |parfaitement )?(?:marché|fonctionné|résolu|réglé)
    (?:c'est|est|est maintenant|problème) (?:bon|réglé|résolu|réparé|arrangé|rentré dans l'ordre)(?! avec vous)
    problème (?:est )?(?:résolu|réglé)
    ^(?:résolu|réglé|réparé|fonctionne|marche)
    (?:je suis|on est) (?:de nouveau |enfin |à nouveau )?(?:connectée?|reconnectée?|en ligne)
"""
GONE = """
    plus (?:de|d'|aucun|aucune) ?(?:message|erreur|problème|souci|messages d'erreur)…
    (?:n'apparaît|ne s'affiche|n'apparait) plus
    (?:le message|l'erreur|le problème) a disparu
"""
NEGATION = """
    pas|jamais|rien|aucune?|toujours le même|toujours la même|plus du tout|malheureusement
"""
FAILED = """
    (?:ne |n')?(?:marche|fonctionne|va|s'allume|change|démarre|répond|imprime|apparaît) (?:toujours|encore) (?:pas|rien)
    (?:toujours|encore) (?:pas|rien|le même|la même|les mêmes|aucun|aucune|bloqué\\p{L}*|en panne)
    (?:ça|cela|ca) (?:ne |n')?(?:m'|a )?(?:a )?(?:pas|rien) (?:vraiment |du tout )?(?:aidé|marché|fonctionné|changé|résolu|réglé|servi|donné)
    n'a (?:malheureusement |hélas |toujours )?(?:pas|rien) (?:vraiment |du tout )?(?:aidé|marché|fonctionné|changé|résolu|réglé|servi|donné|arrangé)
    ^(?:non,? |malheureusement,? )*(?:ça|cela|ca) (?:ne )?(?:marche|fonctionne|change) (?:malheureusement |toujours )?(?:pas|rien)
    (?:aucun|pas de) (?:changement|effet|résultat|amélioration)
    (?:la |le )?même (?:erreur|message|problème|résultat|chose)
    sans (?:succès|effet|résultat)
    (?:il )?ne se passe (?:toujours )?rien
"""
UNSOLVED = """
    (?:ne |n')?(?:marche|fonctionne)(?: malheureusement| toujours| vraiment)* pas
    (?:pas|n'est pas|toujours pas) (?:résolu|réglé|réparé)
    perte de temps|service nul|inadmissible|j'abandonne|je vais résilier
"""
ORDER = """
    ^(?:et |puis |ensuite |alors |maintenant |d'abord |après |enfin |sinon |plutôt )*(?:veuillez|merci de|je vous invite à|essayez|il faut|il faudrait|vous devez|vous devriez|vous pouvez|pensez à|assurez-vous) (?!patienter|m'excuser|nous excuser|accepter|m'indiquer|me |nous |recevoir)\\p{L}+
    ^(?:et |puis |ensuite |alors |maintenant |d'abord |après |enfin |sinon |plutôt )*(?!avez|pouvez|êtes|voulez|souhaitez|savez|pourriez|voyez|utilisez-vous|patientez|excusez|recevez|n'hésitez|désolez|vous|chez|assez|connaissez)\\p{L}{3,}ez(?:-(?:le|la|les|vous|y|en))?\\b(?!-vous\\b…\\?)
    (?:pouvez|pourriez)-vous (?:s'il vous plaît |svp |aussi |d'abord )*(?!me\\b|m'|nous\\b|confirmer|préciser|indiquer|donner|décrire)\\p{L}+(?:er|ir|re)\\b
    ^(?:si|quand|dès que|lorsque) [^,]{3,80}, (?:alors |il faut |veuillez )*\\p{L}{3,}(?:ez|er|ir|re)\\b
"""
FORBIDDEN = """
    ^(?:surtout,? |et )?ne \\p{L}+(?:ez|er) (?:pas|plus|surtout pas)\\b
    ^n'\\p{L}+ez (?:pas|plus)\\b(?<!hésitez pas)
    ^(?:merci de|veuillez) ne (?:pas|plus)\\b
"""
REPORT = """
    ^(?:voilà,? |c'est fait,? )*(?:je viens de|nous venons de|j'ai|nous avons) (?!besoin|bien noté|compris|vu|constaté|une question|pas|le regret)(?:bien |donc |aussi )?\\p{L}+(?:é|i|u|is|it|er|ir|re)\\b
    ^(?:votre|vos|la|le|les|un|une) …(?:a été|ont été|est maintenant|vient d'être) …\\p{L}+(?:ée?s?|ie?s?|ue?s?|ise?)$
"""
QUESTION = """
    (?:quel(?:le)?s?|comment|quand|où|qui|pourquoi|combien|depuis quand|qu'est-ce que|est-ce que|que|à quelle?)\\b…\\?$
    ^(?:avez|êtes|utilisez|voyez|souhaitez|voulez|pouvez|pourriez|savez|recevez|as|es|vois)-(?:vous|tu)\\b(?!…(?:redémarrer|essayer|vérifier|cliquer|ouvrir|débrancher|brancher|relancer|réinstaller|installer|vider|appuyer|supprimer|désactiver|activer))…
    (?:pouvez|pourriez)-vous (?:s'il vous plaît |svp |aussi |d'abord )*(?:me |m'|nous )?(?:confirmer|préciser|indiquer|donner|décrire|dire|communiquer|fournir|envoyer|transmettre)
    (?:veuillez|merci de|merci de bien vouloir) (?:me |m'|nous )?(?:confirmer|préciser|indiquer|donner|décrire|dire|communiquer|fournir|envoyer|transmettre)
    (?:donnez|indiquez|dites|envoyez|communiquez|précisez|transmettez)-(?:moi|nous)
    (?:j'aurais|j'ai|nous avons|nous aurions) besoin (?:de|d'|du|des) ?(?:votre|vos|la|le|l'|numéro)
"""
AGREES = """
    ^(?:oui|ouais|d'accord|ok|okay|merci|parfait|super|très bien|bien sûr|c'est (?:ça|bon|exact|correct)|exactement|entendu|volontiers)
"""
DECLINES = """
    ^(?:non|pas vraiment|pas encore)
"""
REFUSES = """
    je (?:ne |n')?(?:sais|connais|trouve|retrouve|ai|l'ai|me souviens|peux) (?:pas|plus)|aucune idée|pas sous la main|je l'ai (?:perdue?|oubliée?)
"""
MENDED = """
    laissez tomber|c'est bon,? j'ai (?:trouvé|réussi)|j'ai (?:finalement |enfin )?(?:trouvé|réussi|résolu|réglé)(?: le problème| la solution| l'erreur| la cause)?(?: tout seul| toute seule| moi-même)?
    (?:en fait|finalement),? (?:c'est bon|c'était|j'ai)
    oubliez(?: ça| ma demande)?
    je me suis débrouillée?
"""
TAKEN_BACK = """
    ^(?:oh,? |pardon,? |désolée?,? |excusez-moi,? |attendez,? |ah non,? |non,? )*(?:c'était|c'est|ce que j'ai dit (?:était|est)) (?:faux|une erreur|incorrect|pas correct|pas ça|erroné|la mauvaise \\p{L}+|le mauvais \\p{L}+)
    je me suis trompée?|(?:au temps|autant) pour moi|erreur de ma part|je vous ai (?:induit en erreur|mal renseigné\\p{L}*|donné la mauvaise \\p{L}+)|^(?:rectification|correction)
    (?:oubliez|ne tenez pas compte de|ignorez) (?:ce que|mon dernier|ma dernière|mon précédent|mon message|ça)…
"""
HANDED_OVER = """
    je (?:vous |le |la )?(?:transfère|transmets|passe|redirige|mets en relation)…
    (?:responsable|superviseur|niveau (?:2|supérieur)|service technique|escalad\\p{L}*|technicien spécialisé)
"""
WISH = """
    pas|plus|erreur|problème|panne|voudrais|souhaite|besoin|comment|pourquoi|depuis|impossible|bloquée?|perdue?|oubliée?|faux|fausse
"""
