"""Portuguese, of Brazil and Portugal. The kinds are those of `refdesk.kit.phrases.Kind`."""

GREETING = """
    olá(?: a todos| equipe| boa tarde| bom dia| boa noite)?|oi|oie|bom dia|boa tarde|boa noite|prezad[oa]s?(?: \\p{L}+)?|car[oa] cliente
    (?:muito )?obrigad[oa](?: (?:por|pelo|pela) \\p{L}+(?: (?:em contato|o contato|contato|contacto))?)?
"""
ASSENT = """
    ok|okay|certo|claro|sim|tudo bem|perfeito|ótimo|ótima|beleza|entendi|entendido|está bem|tá bom|tá|com certeza|sem problema|bem|bom|pois não|então|ah|combinado
"""
CIVIL = """
    (?:muito |muitíssimo )?obrigad[oa]\\b…|valeu…|agradeço…|agradecemos…|grat[oa]…
    (?:não )?(?:era|é|foi) (?:só|apenas) (?:isso|isto)…|(?:não )?(?:só isso|isso é tudo|é tudo)
    (?:de nada|por nada|imagina|disponha|não há de quê|às ordens|eu que agradeço)…|é um prazer…|um prazer…
    (?:tenha|tenham|desejo|desejamos) (?:-lhe )?(?:um|uma) (?:ótim[oa]|bom|boa|excelente|lind[oa])…
    (?:bom|boa|ótimo|ótima) (?:dia|tarde|noite|fim de semana|semana|final de semana|trabalho)…
    (?:até (?:logo|mais|breve|a próxima)|tchau|adeus)…|(?:atenciosamente|cumprimentos|com os melhores cumprimentos|abraços?)…
    (?:um|só um|apenas um|me dê um|dê-me um) (?:momento|momentinho|minuto|minutinho|instante|segundo)…
    (?:aguarde|espere|por favor,? aguarde)…|(?:eu )?aguardo…
    (?:desculpe|desculpa|lamento|lamentamos|sinto muito|perdão|peço desculpas?|pedimos desculpas?|sentimos muito)\\b…
    (?:eu )?(?:entendo|compreendo|percebo)(?: (?:a|o) (?:sua|seu) \\p{L}+)?|(?:vou |deixe-me |deixa eu )(?:verificar|ver|checar|conferir)(?: isso| aqui| agora)?…
    (?:fico|ficamos|estou) (?:muito )?(?:feliz|felizes|content[ea]s?)…|que (?:bom|ótimo)…
    (?:perfeito|ótimo|excelente|beleza|certo|ok|tudo bem|tudo certo|show|maravilha|combinado|entendi|entendido|sim|não|claro)
    (?:meu nome é|o meu nome é|me chamo|chamo-me|sou (?:o|a)) \\[name[ \\d]*\\]…
    (?:preciso de|pode me dar uma) (?:uma )?ajuda
    não hesite…|espero que…|estou à disposição…|estamos à disposição…|fico (?:no aguardo|à disposição)…
"""
OFFERING = """
    (?:como|em que|no que|em quê) (?:posso|podemos|eu posso) …(?:ajud\\p{L}*|ser útil)
    (?:bem-vind[oa]s?) (?:a|à|ao)…
    o que posso fazer por (?:você|si)
    (?:vou|posso) (?:te |lhe |o |a )?ajudá?-?\\p{L}* (?:com isso|sim)
"""
CLOSING = """
    (?:posso|podemos|há|tem|precisa|deseja|existe) …(?:mais alguma|algo mais|mais algo|outra coisa|alguma outra)…
    (?:se tiver|se precisar|caso tenha|caso precise|qualquer) …(?:dúvida|dúvidas|questão|coisa|ajuda|mais)…
    (?:tenha|tenham) (?:um|uma) (?:ótim[oa]|bom|boa|excelente)
    até (?:logo|mais|breve)|tchau|adeus|(?:bom|boa|ótimo) (?:fim de semana|semana|restante)
    não hesite em…
"""
REPAIR = """
    não (?:entendi|compreendi|percebi)(?: bem)?
    (?:pode|poderia) (?:repetir|reformular|esclarecer)
"""
WORKED = """
    (?:agora|já|finalmente|tudo) (?:sim )?(?:está |tá |eu )?(?:funciona|funcionou|funcionando|a funcionar|deu certo|consigo|consegui|imprime|liga|abre|foi|voltou|chegou|chegaram|apareceu|recebi|entrou|carregou|ok|normal|resolvido)\\b…
    (?:funciona|funcionou|funcionando) (?:agora|já|bem|perfeitamente|direitinho|de novo|normalmente|outra vez|certinho)?
    (?:deu certo|isso resolveu|resolveu o problema|ajudou|isso ajudou|resolveu)
    (?:está|foi|ficou|problema) (?:tudo )?(?:resolvido|solucionado|consertado)
    ^(?:resolvido|solucionado|funcionou|funciona|deu certo|resolveu)
    voltou (?:a funcionar|ao normal)
"""
GONE = """
    (?:já )?não (?:aparece|dá|há|tem|mostra|cai|trava|ocorre|acontece) mais…|(?:já não aparece|deixou de aparecer)…
    sem mais (?:erros|problemas)|(?:parou|deixou) de (?:dar|aparecer|travar|cair|piscar)…
    (?:o erro|a mensagem|o problema) (?:já )?(?:sumiu|desapareceu)
"""
NEGATION = """
    não|nunca|nada|nem|nenhum[a]?|ainda|sem sucesso|continua|continuam|infelizmente|tampouco
"""
FAILED = """
    ainda (?:não|dá|aparece|está|tá|continua|assim|o mesmo|a mesma|sem|nada)
    (?:continua|continuam|segue|permanece) (?:sem|igual|não|o mesmo|a mesma|com o mesmo|com a mesma|dando|aparecendo|caindo|travad\\p{L}*|travando|piscando|lent\\p{L}*|offline|na mesma|vermelh\\p{L}*|bloquead\\p{L}*|a (?:dar|aparecer|cair|falhar|piscar))
    (?:isso |também |infelizmente |mas )*(?:não|nem|nada) (?:me )?(?:funcionou|ajudou|resolveu|adiantou|mudou|deu certo|deu resultado|resultou|serviu|surtiu)
    ^(?:não,? |infelizmente,? |mas )*(?:isso )?não (?:funciona|resolve|adianta|muda|está a funcionar|deu)\\b
    (?:nenhuma?|sem) (?:mudança|efeito|resultado|sucesso|diferença|melhora|alteração)
    (?:o|a|os|as) mesm[oa]s? (?:erro|mensagem|problema|coisa|resultado)
    ^mesm[oa] (?:erro|mensagem|problema|coisa)
    não (?:acontece|acontece|aconteceu|muda|mudou) nada|nada (?:mudou|acontece|aconteceu)
"""
UNSOLVED = """
    não (?:me )?(?:funciona|funcionou|está funcionando|está a funcionar|tá funcionando)
    não (?:foi |está |ficou )?(?:resolvido|resolveu|solucionado|útil)
    perda de tempo|péssim[oa]\\p{L}*|vou cancelar
"""
ORDER = """
    ^(?:e |depois |agora |então |primeiro |em seguida,? |por favor,? |em vez disso,? |melhor |por gentileza,? )*(?!pode|tem|você|aguarde|desculpe|me\\b|não|obrigad|espere|bom|boa|qual|como|seu|sua|isso|essa|este|ainda|onde|quando|porque|para\\b|parece|conta\\b|nome)(?:reinici|deslig|lig|desconect|conect|abr|fech|vá|clique|clic|pression|selecion|escrev|digit|insir|insira|atualiz|instal|desinstal|desativ|ativ|apag|exclu|elimin|mud|troqu|test|tent|verifi|confir|baix|coloc|coloqu|mantenh|remov|retir|tir|us|utiliz|copi|envi|acess|aced|limp|volt|marqu|configur|redefin|entr|cri|aceit|permit|deix|faç|faz|experiment|carregu|prim|prem|toqu|solt|aperte|segur|sai|saia|procur|escolh|defin|restaur|recarregu|acesse)\\p{L}{0,7}\\b
    ^(?:e |depois |agora |então |primeiro |por favor,? )*(?:deve|precisa|tem de|tem que|é preciso|é necessário|tente|experimente|certifique-se de) (?!informar|saber)\\p{L}+
    (?:pode|poderia|podia) (?:por favor |também |agora |então )*(?:reiniciar|desligar|ligar|desconectar|conectar|abrir|fechar|ir|clicar|pressionar|selecionar|digitar|inserir|atualizar|instalar|desinstalar|desativar|ativar|apagar|excluir|eliminar|mudar|trocar|testar|tentar|verificar|baixar|colocar|remover|tirar|acessar|limpar|voltar|fazer|experimentar|carregar)\\p{L}*
    ^(?:se|quando|caso|assim que) [^,]{3,80}, (?:então |por favor |deve )*\\p{L}{2,}(?:e|a|ar|er|ir)\\b
    ^(?:e |depois |agora |então |primeiro |por favor,? )*(?!tem|parece|funciona|esta|existe|aparece|pode|deve|falta|fica|custa|chega|sobre|entre|desde|onde|para|este|esse|essa|esta|quer|deseja|precisa|nome|cliente|nossa|toda|cada|pela|numa|conta)\\p{L}{3,}[ae] (?:o|a|os|as|um|uma|em|no|na|nos|nas|outro|outra|seu|sua|com|ao|à|novamente|de novo)\\b
"""
FORBIDDEN = """
    ^(?:por favor,? |e )?não (?:o |a |os |as )?(?!hesite|se preocupe|é|há|tenho|posso|tem|pode|se|me|está|foi)\\p{L}{3,}(?:e|a)\\b
"""
REPORT = """
    ^(?:pronto,? |já |bem,? |acabei de |eu |acabo de |lhe )*(?:redefini|reiniciei|enviei|ativei|desativei|criei|atualizei|alterei|corrigi|cancelei|reembolsei|desbloqueei|gerei|adicionei|liberei|resetei|troquei|removi|estornei|enviar|redefinir|reiniciar)\\b(?!…\\?)
    ^(?:o seu|a sua|seu|sua|os seus|as suas|o|a) …(?:foi|foram|já está|está agora) …\\p{L}+(?:ad|id)[oa]s?$
"""
QUESTION = """
    (?:qual|quais|como|quando|onde|quem|por que|por quê|porquê|quant[oa]s?|o que|que|desde quando|há quanto)\\b…\\?$
    (?:pode|poderia|podia|consegue) (?:por favor |por gentileza |me |nos )*(?:informar|dar|dizer|confirmar|fornecer|enviar|passar|indicar|descrever|mandar)(?:-me|-nos)?
    ^(?:por favor,? |por gentileza,? )?(?:me (?:informe|diga|passe|envie|confirme|dê|mande)|(?:informe|diga|indique|envie|confirme|dê|forneça)(?:-me|-nos)?(?: o seu| a sua| seu| sua| o número| qual)|(?:preciso|vou precisar|precisamos) (?:do|da|dos|das|de) (?:seu|sua|número|nome|cpf|e-mail))
"""
AGREES = """
    ^(?:sim|claro|ok|okay|certo|tudo bem|perfeito|obrigad[oa]|exato|isso|isso mesmo|correto|beleza|com certeza|feito|pronto|tá bom|combinado|ótimo)
"""
DECLINES = """
    ^(?:não\\b|ainda não|infelizmente não)
"""
REFUSES = """
    não (?:o |a |me )?(?:sei|tenho|lembro|encontro|acho|posso|consigo)|nem ideia|não faço ideia|(?:perdi|esqueci)
"""
MENDED = """
    (?:deixa|deixe) (?:pra lá|para lá|estar)|esque[çc]a(?: isso)?,?|já (?:resolvi|consegui|descobri|encontrei|achei)
    (?:eu mesm[oa]|sozinh[oa]|por conta própria) (?:resolvi|consegui)|(?:resolvi|consegui|descobri|arrumei) (?:sozinh[oa]|eu mesm[oa]|por conta própria|aqui|o problema)
    (?:no fim|no final|afinal) …(?:era|foi|resolvi)
    (?:descobri|encontrei|achei) (?:o problema|a solução|a causa|o que era|o erro)
"""
TAKEN_BACK = """
    ^(?:desculpe,? |desculpa,? |perdão,? |opa,? |espere,? |não,? |lamento,? |ops,? )*(?:isso|o que eu disse|essa informação|o que disse) (?:estava|está|era|foi) (?:errad[oa]|incorret[oa]|um erro|um engano|equivocad[oa])
    (?:eu )?me (?:enganei|equivoquei|confundi)|enganei-me|erro meu|(?:foi )?engano meu|falha minha|^(?:correção|corrigindo)
    (?:esqueça|ignore|desconsidere) (?:o que|isso|minha|a minha|meu|o meu|a última)…
"""
HANDED_OVER = """
    (?:vou |estou )?(?:transferi\\p{L}*|encaminh\\p{L}*|passar|repass\\p{L}*|escal\\p{L}*) …(?:para|ao|à|o seu caso|seu caso)…
    (?:supervisor|supervisora|gerente|segundo nível|setor técnico|equipe técnica|equipa técnica)
"""
WISH = """
    não|erro|problema|falha|quero|gostaria|queria|preciso|como|por que|desde|bloquead[oa]|perdi|esqueci|errad[oa]
"""
