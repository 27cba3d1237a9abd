"""Spanish. The kinds are those of `refdesk.kit.phrases.Kind`."""

GREETING = """
    hola(?: a todos| equipo| buenas| buenos días| buenas tardes)?
    (?:muy )?buen[oa]s(?: (?:días|tardes|noches))?
    buen día|estimad[oa]s?(?: (?:cliente|señor\\p{L}*|equipo))?
    (?:muchas |mil )?gracias(?: por (?:su|tu|la|contactar\\p{L}*|escribir\\p{L}*|esperar|comunicarse)(?: (?:con nosotros|paciencia|mensaje|respuesta|espera|ayuda))?)?
"""
ASSENT = """
    vale|de acuerdo|ok|okay|sí|claro|claro que sí|por supuesto|perfecto|muy bien|bien|genial|entendido|listo|bueno|ah|pues|no hay problema|sin problema|desde luego|encantad[oa]
"""
CIVIL = """
    (?:muchas |mil |muchísimas )?gracias\\b…
    (?:se lo |te lo |le |os )?agradezco…
    (?:no )?(?:eso|esto) (?:es|era|sería) todo…|(?:no )?(?:nada más|eso es)
    de nada…|a (?:usted|ti|vosotros)(?: también)?|con (?:mucho )?gusto…|es un placer…|un placer…
    (?:que )?(?:tenga|ten|tengas|pase|pases|tengan) (?:un |una )?(?:buen|bonito|excelente|buena|feliz|lindo)…
    (?:un )?(?:cordial )?saludos?…|atentamente…
    (?:adiós|hasta (?:luego|pronto|la próxima)|chao)…|(?:buen|feliz) (?:día|fin de semana)…
    (?:un|deme un|dame un|permítame un) (?:momento|momentito|segundo|minuto|instante)…
    (?:espere|espera|aguarde) (?:un )?(?:momento|segundo|minuto|por favor)…|por favor,? (?:espere|aguarde)…
    (?:lo siento|lamento|lamentamos|sentimos|siento|disculpe|disculpa|perdón|perdone)\\b…
    (?:le |te )?(?:pido|pedimos) (?:disculpas|perdón)…
    (?:entiendo|comprendo|ya veo|lo entiendo)(?: (?:su|tu) \\p{L}+)?
    (?:lo |ya lo )?(?:reviso|compruebo|miro|verifico)(?: ahora mismo| enseguida)?|déjeme (?:revisar|comprobar|verificar|ver)(?:lo)?|voy a (?:revisarlo|comprobarlo|verificarlo)
    (?:me|nos) alegr(?:o|a|amos)…|(?:qué|que) bien…|(?:qué|que) bueno…
    (?:perfecto|genial|estupendo|excelente|muy bien|de acuerdo|vale|ok|listo|entendido|claro|sí|no|fantástico|bueno)
    (?:me llamo|mi nombre es|soy) \\[name[ \\d]*\\]…
    (?:necesito|me pueden|me puede|pueden) (?:su |una )?(?:ayuda|ayudarme|ayudar)
    no dude en…|espero que…|estamos para (?:servirle|ayudarle)…|quedo (?:a|atent[oa]|pendiente)…
"""
OFFERING = """
    (?:en qué|cómo|con qué) (?:puedo|podemos|le puedo|te puedo|podría|lo puedo|la puedo) …(?:ayudar\\p{L}*|servir\\p{L}*)
    bienvenid[oa]s? (?:a|al)…
    (?:con gusto|encantad[oa] de) …(?:ayud|atiend)\\p{L}*
    qué puedo hacer por (?:usted|ti)
"""
CLOSING = """
    (?:puedo|podemos|hay|necesita|necesitas|desea) …(?:algo|alguna cosa|otra cosa|otra consulta) (?:más|en)…
    algo más|alguna otra (?:duda|consulta|pregunta)
    (?:si tiene|si tienes|si necesita|si necesitas|cualquier) …(?:duda|consulta|pregunta|más|cosa|ayuda)…
    (?:tenga|ten|tengas|pase|pases) (?:un |una )?(?:buen|bonito|excelente|buena|feliz)
    hasta (?:luego|pronto)|adiós|(?:buen|feliz) (?:día|fin de semana)
    no dude en (?:contactar\\p{L}*|escribir\\p{L}*|volver)
"""
REPAIR = """
    no (?:le |te )?(?:he )?(?:entiendo|entendido|entendí)
    (?:puede|podría|puedes) (?:repetir|reformular|aclarar)\\p{L}*
"""
WORKED = """
    (?:ya|ahora|por fin) (?:sí )?(?:me |todo |se )?(?:funciona|sirve|va|anda|carga|puedo|pude|conecta|está|quedó|imprime|enciende)\\b…
    (?:funciona|va|anda|sirve) (?:ya|ahora|bien|perfecto|perfectamente|de nuevo|otra vez|de maravilla|todo)
    (?:eso|esto|con eso|así|todo) (?:sí )?(?:me )?(?:ha |lo )?(?:funciona|funcionó|funcionado|solucionó|solucionado|resolvió|resuelto|ayudó|arregló|sirvió)
    (?:está|queda|quedó|problema) (?:ya )?(?:solucionado|resuelto|arreglado|listo)
    (?:se )?(?:solucionó|resolvió|arregló|ha solucionado|ha resuelto|ha arreglado)
    ^(?:solucionado|resuelto|arreglado|funciona|funcionó)
    (?:me |les )?funcionó
"""
GONE = """
    ya no (?:me )?(?:sale|aparece|da|hay|tengo|marca|muestra|veo|se corta)…(?:error|mensaje|problema|aviso|nada|\\p{L}+)?
    (?:no hay|sin) más (?:errores|problemas)
    (?:el error|el mensaje|el problema) (?:ya )?(?:desapareció|ha desaparecido|se fue)
"""
NEGATION = """
    no|nunca|nada|tampoco|ningun[oa]?|ningún|todavía|aún|sin éxito|lamentablemente|sigue|siguen
"""
FAILED = """
    (?:todavía|aún|aun) (?:no|me sale|sale|aparece|tengo|sigue)
    (?:sigue|siguen|sigo) (?:sin|igual|apareciendo|saliendo|fallando|dando|en rojo|el mismo|la misma|con el mismo|con la misma|apagad\\p{L}*|bloquead\\p{L}*|lento|lenta)
    (?:eso |esto )?(?:tampoco|no) (?:me )?(?:ha |lo )?(?:funcionó|funcionado|ayudó|ayudado|sirvió|servido|solucionó|resolvió|arregló|cambió|cambiado|resultó)
    ^(?:no,? |pues |lamentablemente,? )*(?:eso |esto )?(?:no|tampoco) (?:funciona|sirve|cambia|va)\\b
    (?:nada|ningún|sin) (?:ha cambiado|cambió|cambio|cambios|éxito|resultado|efecto|diferencia|suerte)
    (?:el|la|los) mism[oa]s? (?:error|mensaje|problema|cosa|resultado)
    ^mismo (?:error|problema|mensaje)
    no (?:pasa|ocurre|sucede) nada
    todo (?:sigue )?igual
"""
UNSOLVED = """
    no (?:me )?(?:funciona|sirve|va|anda|funcionó|sirvió)
    no (?:se |está |quedó |ha )?(?:resuelto|solucionado|solucionó|resolvió|arreglado|sido útil)
    pérdida de tiempo|pésim[oa]\\p{L}*|me doy de baja
"""
ORDER = """
    ^(?:y |luego |después |ahora |entonces |primero |a continuación |por favor,? |mejor |en su lugar,? |para ello,? )*(?!puede|tiene|usted|sabe|desea|quiere|dime|dígame|deme|dame|indíqueme|me\\b|tenga|pase|espere|disculpe|perdone|aguarde|gracias|para\\b|hola|nada|ahora|cuenta|factura|sería|fuera|hay|desde|cada|esta|esa|una|la|las|nuestra|era|estaba|podría|eso|ese|este|sobre|donde|cuando|aunque|porque|parece|cliente|nombre)(?:reinici|desconect|conect|apag|enciend|abr|cierr|hag|vay|pulse|presion|seleccion|escrib|introduzc|ingres|actualic|instal|desinstal|desactiv|activ|borr|elimin|cambi|prueb|intent|compruebe|revis|verifi|descarg|pong|mantenga|suelt|sac|quit|utilic|us|cop|envi|acced|haz|ve|abre|pon|limpi|vuelv|busqu|marqu|configur|restablezc|entre|cre|acept|permit|dej|insert|retir|llam|deslic|despliegu)\\p{L}{0,7}\\b
    ^(?:y |luego |después |ahora |entonces |primero |por favor,? )*(?:debe|tiene que|debería|hay que|necesita|intente|intenta|pruebe a|procure|asegúrese de) (?!saber|esperar)(?:que )?\\p{L}+
    (?:puede|podría|puedes|podrías) (?:por favor |también |ahora |entonces )*(?:reiniciar|desconectar|conectar|apagar|encender|abrir|cerrar|hacer|ir|pulsar|presionar|seleccionar|escribir|introducir|actualizar|instalar|desinstalar|desactivar|activar|borrar|eliminar|cambiar|probar|intentar|comprobar|revisar|verificar|descargar|poner|limpiar|volver|acceder|entrar)\\p{L}*
    ^(?:si|cuando|en cuanto) [^,]{3,80}, (?:entonces |por favor |debe )*\\p{L}{2,}(?:e|a|ar|er|ir|en)\\b
    ^(?:y |luego |después |ahora |entonces |primero |por favor,? )*(?!tiene|parece|funciona|esta|existe|aparece|puede|debe|hace|falta|queda|cuesta|llega|sale|viene|vale|incluye|para|este|quiere|desea|necesita|nombre|sobre|entre|desde|donde|cliente|gracias|buenas|encontre|cancele|envie|hola)\\p{L}{3,}(?:[ae]n?|[ae]lo|[ae]la) (?:el|la|los|las|un|una|su|sus|en|otro|otra|con|al|sobre|de nuevo|otra vez)\\b
"""
FORBIDDEN = """
    ^(?:por favor,? |y )?no (?:lo |la |los |las )?(?!dude|se preocupe|te preocupes|es\\b|hay|tengo|puedo|tiene|pude|puede|me|se)\\p{L}{3,}(?:e|a|es|as|en)\\b
"""
REPORT = """
    ^(?:listo,? |ya |bien,? )*(?:le |te |lo |la |se lo |ya )*(?:he|hemos|acabo de|acabamos de) (?!visto|entendido|recibido)\\p{L}+
    ^(?:listo,? |ya )*(?:le |te |lo |la |se lo )?(?:envié|reinicié|cambié|activé|desactivé|creé|actualicé|restablecí|reembolsé|cancelé|corregí|desbloqueé|generé|añadí)\\b
    ^(?:su|sus|el|la|tu) …(?:ha sido|han sido|fue|ya está|ha quedado) …\\p{L}+(?:ad|id)[oa]s?$
"""
QUESTION = """
    (?:qué|cuál(?:es)?|cómo|cuándo|dónde|quién|por qué|cuánt[oa]s?|desde cuándo|a qué)\\b…\\?$
    ^(?:tiene|tienes|está|estás|usa|utiliza|ve|ha|has|es|hay|aparece|sale|quiere|desea|podría|puede|le sale|le aparece|me podría|me puede)\\b(?!…(?:reiniciar|desconectar|apagar|abrir|cerrar|pulsar|actualizar|instalar|borrar|probar|comprobar|verificar))…\\?$
    (?:me )?(?:puede|podría|puedes|podrías) (?:por favor )?(?:indicar|dar|decir|confirmar|facilitar|proporcionar|enviar|compartir|pasar|describir)(?:me|nos)?
    ^(?:por favor,? )?(?:indíqueme|dígame|deme|dime|dame|facilíteme|confírmeme|envíeme|indíquenos|proporcióneme|confirme (?:su|el|la)|necesito (?:su|el|la) (?:número|nombre|correo|código|dirección))
"""
AGREES = """
    ^(?:sí|si,|claro|vale|ok|okay|de acuerdo|perfecto|gracias|muchas gracias|exacto|correcto|así es|eso es|por supuesto|listo|muy bien|genial|hecho)
"""
DECLINES = """
    ^(?:no\\b|para nada|todavía no|aún no)
"""
REFUSES = """
    no (?:lo |la |me |los )?(?:sé|tengo|recuerdo|acuerdo|encuentro|puedo)|ni idea|(?:lo |la )?(?:perdí|olvidé|he perdido|he olvidado)
"""
MENDED = """
    (?:olvídelo|olvidalo|déjelo|déjalo),?|ya (?:lo )?(?:encontré|resolví|solucioné|arreglé|pude|conseguí)(?: yo mism[oa])?
    (?:lo )?(?:he )?(?:resolví|solucioné|arreglé|resuelto|solucionado|arreglado|conseguido) (?:yo|solo|sola|por mi cuenta)(?: mism[oa])?
    (?:al final|resulta que|resultó que) …
    (?:encontré|he encontrado|di con) (?:el problema|la solución|la causa|el fallo)
"""
TAKEN_BACK = """
    ^(?:perdón,? |perdone,? |disculpe,? |lo siento,? |ay,? |uy,? |espere,? |no,? )*(?:eso|esto|lo que (?:le|te) dije|lo anterior) (?:estaba|está|era|es|fue|no era|no es) (?:mal|incorrecto|equivocado|un error|erróneo|correcto)
    me (?:he )?(?:equivoqué|equivocado|confundí|confundido)|error mío|fue (?:un )?error mío|mi error|^(?:corrección|rectifico)
    (?:olvide|ignore|olvida|ignora|no haga caso de|haga caso omiso de|descarte) (?:lo (?:que|anterior)|eso|mi (?:último|mensaje))…
"""
HANDED_OVER = """
    (?:le |te |lo |la )?(?:transfiero|paso|derivo|voy a transferir|voy a pasar|remito|escalo) …(?:con|a|al|su caso)…
    (?:supervisor|supervisora|encargad[oa]|nivel 2|segundo nivel|departamento técnico|escalad[oa])
"""
WISH = """
    no|error|problema|falla|fallo|quiero|quisiera|necesito|cómo|por qué|desde|bloquead\\p{L}*|perdí|olvidé|puedo
"""
