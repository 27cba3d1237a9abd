"""Support conversations in other languages than English, with what a playbook learned from each has to say.

They were written apart from the rules, to be read by them. A line begins with who says it, `C` or `A`.
"""

from __future__ import annotations

from dataclasses import dataclass

from refdesk.playbooks import Turn


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and what is to be learned from it.

    Attributes:
        outcome: As `cases.judge` has it.
        steps: What each step holds, in order; `?` before it says that it is a question.
        tried: What was tried in vain.
        title: What the title holds.
    """

    language: str
    text: str
    outcome: str
    steps: tuple[str, ...]
    title: str
    tried: tuple[str, ...] = ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the conversation."""
        lines = [line.strip().partition(": ") for line in self.text.strip().splitlines()]
        return tuple(Turn("customer" if who == "C" else "agent", said) for who, _, said in lines)


CONVERSATIONS = (
    Conversation(
        "de",
        """
        C: Guten Morgen zusammen
        A: Guten Morgen! Wie kann ich Ihnen weiterhelfen?
        C: Mein Laptop findet seit dem Update das Firmen-WLAN nicht mehr.
        A: Das tut mir leid zu hören. Welches Betriebssystem nutzen Sie?
        C: Windows 11
        A: Bitte schalten Sie den Flugmodus einmal ein und wieder aus.
        C: Hab ich gemacht, bringt leider nichts.
        A: Dann löschen Sie bitte das gespeicherte Netzwerk in den Einstellungen und verbinden sich neu.
        C: Super, jetzt klappt es wieder! Vielen Dank
        A: Sehr gerne. Haben Sie sonst noch Fragen?
        C: Nein, das war alles. Schönen Tag noch
        """,
        "likely_resolved",
        ("?Betriebssystem", "gespeicherte Netzwerk"),
        "Firmen-WLAN",
        ("Flugmodus",),
    ),
    Conversation(
        "de",
        """
        C: Hallo, ich habe eine falsche Lieferadresse angegeben, kann man das noch ändern?
        A: Hallo und danke für Ihre Nachricht! Gern helfe ich Ihnen weiter.
        A: Können Sie mir bitte Ihre Bestellnummer nennen?
        C: Ja klar, die 88-1234
        A: Einen kleinen Moment bitte.
        A: Ich habe die Lieferadresse für Sie geändert.
        C: Perfekt, danke Ihnen
        A: Gern geschehen! Falls Sie noch weitere Fragen haben, melden Sie sich jederzeit. Mit freundlichen Grüßen
        """,
        "",
        ("?Bestellnummer", "geändert"),
        "Lieferadresse",
    ),
    Conversation(
        "de",
        """
        C: Der Drucker zieht kein Papier mehr ein
        A: Öffnen Sie bitte die hintere Klappe und entfernen Sie Papierreste.
        C: Da war nichts, es kommt immer noch dieselbe Meldung.
        A: Probieren Sie bitte ein anderes Papierfach.
        C: Funktioniert auch nicht. Langsam reicht es mir.
        """,
        "likely_failed",
        (),
        "Drucker",
        ("hintere Klappe", "Papierfach"),
    ),
    Conversation(
        "fr",
        """
        C: Bonjour, je n'arrive plus à me connecter à mon espace client depuis hier.
        A: Bonjour, merci d'avoir contacté le support. Quel navigateur utilisez-vous ?
        C: Firefox
        A: Videz le cache de votre navigateur, s'il vous plaît.
        C: C'est fait mais toujours le même message d'erreur.
        A: D'accord. Veuillez essayer en navigation privée.
        C: Ah oui, là ça marche ! Merci beaucoup
        A: Avec plaisir, bonne journée à vous !
        """,
        "likely_resolved",
        ("?navigateur", "navigation privée"),
        "espace client",
        ("Videz le cache",),
    ),
    Conversation(
        "fr",
        """
        C: Bonsoir, j'ai été débité deux fois pour mon abonnement
        A: Bonsoir, je suis désolée pour ce désagrément.
        A: Pourriez-vous m'indiquer votre numéro de client ?
        C: oui c'est le 445
        A: Merci. Un instant, je vérifie.
        A: Je viens de rembourser le second prélèvement.
        C: Super, merci pour votre aide
        A: Je vous en prie. N'hésitez pas à nous recontacter. Bonne soirée !
        """,
        "",
        ("?numéro de client", "rembourser"),
        "débité deux fois",
    ),
    Conversation(
        "fr",
        """
        C: Ma box n'a plus internet, le voyant est rouge
        A: Débranchez la box pendant trente secondes puis rebranchez-la.
        C: Ça n'a rien changé.
        A: Pardon, je me suis trompé, c'est un autre modèle.
        A: Appuyez plutôt sur le bouton reset avec un trombone.
        C: Le voyant est vert maintenant, tout fonctionne.
        """,
        "likely_resolved",
        ("bouton reset",),
        "Ma box n'a plus internet",
        ("Débranchez",),
    ),
    Conversation(
        "es",
        """
        C: Hola buenas tardes
        A: Hola, ¿en qué puedo ayudarle hoy?
        C: No puedo abrir los archivos adjuntos del correo en el móvil
        A: Entiendo. ¿Qué aplicación de correo utiliza?
        C: la que viene de serie
        A: Actualice la aplicación desde la tienda, por favor.
        C: Ya la actualicé y sigue sin abrir nada
        A: De acuerdo, vaya a Ajustes y borre la caché de la aplicación.
        C: ¡Ahora sí funciona! Mil gracias
        A: ¡Me alegro! ¿Puedo ayudarle en algo más?
        C: no, eso es todo, gracias
        """,
        "likely_resolved",
        ("?aplicación de correo", "borre la caché"),
        "archivos adjuntos",
        ("Actualice la aplicación",),
    ),
    Conversation(
        "es",
        """
        C: Buenos días, necesito una factura con los datos de mi empresa
        A: Buenos días. Gracias por contactarnos. ¿Me podría facilitar el número de pedido?
        C: sí, 7781
        A: Un momento, por favor.
        A: Le he enviado la factura corregida a su correo.
        C: recibida, muchas gracias
        A: De nada, que tenga un buen día.
        """,
        "",
        ("?número de pedido", "enviado la factura"),
        "factura",
    ),
    Conversation(
        "es",
        """
        C: El televisor no encuentra ningún canal
        A: Compruebe que el cable de antena esté bien conectado.
        C: Está bien conectado.
        A: Haga una búsqueda automática de canales desde el menú.
        C: Tampoco ha funcionado, sigue igual
        A: Lo siento, en ese caso le paso con el departamento técnico.
        C: pues vaya, no está resuelto
        """,
        "likely_failed",
        (),
        "televisor",
        ("búsqueda automática",),
    ),
    Conversation(
        "it",
        """
        C: Buonasera, l'app si chiude da sola appena la apro
        A: Buonasera! Mi dispiace per il disagio. Che modello di telefono ha?
        C: un Pixel 8
        A: Provi a riavviare il telefono.
        C: fatto, ma si chiude ancora, non è cambiato niente
        A: Allora disinstalli l'app e la installi di nuovo dallo store.
        C: Perfetto, adesso funziona. Grazie mille!
        A: Prego, è stato un piacere. Buona serata!
        """,
        "likely_resolved",
        ("?modello di telefono", "disinstalli"),
        "si chiude da sola",
        ("riavviare",),
    ),
    Conversation(
        "it",
        """
        C: Salve, vorrei cambiare l'indirizzo email del mio account
        A: Salve, certo. Mi può indicare il suo codice cliente?
        C: Sì, è 3321
        A: Un attimo, controllo subito.
        A: Ho aggiornato l'indirizzo email del suo account.
        C: ottimo, grazie
        A: Di nulla! Ha bisogno di altro?
        C: no grazie
        """,
        "",
        ("?codice cliente", "aggiornato"),
        "indirizzo email",
    ),
    Conversation(
        "it",
        """
        C: La stampante stampa pagine bianche.
        A: Sostituisca la cartuccia nera.
        C: Lasci stare, ho risolto da solo: ho pulito le testine dal menu e ora stampa bene
        A: Ottimo, sono contento!
        """,
        "likely_resolved",
        ("ho pulito le testine",),
        "stampante",
    ),
    Conversation(
        "pt",
        """
        C: Oi, boa tarde
        A: Boa tarde! Em que posso ajudar?
        C: O aplicativo do banco não envia o código por SMS
        A: Entendi. Qual é o modelo do seu celular?
        C: Motorola
        A: Por favor, desligue o aparelho e ligue novamente.
        C: Já fiz isso, continua sem chegar
        A: Certo. Verifique se o número não está na lista de bloqueados.
        C: Era isso! Deu certo agora, muito obrigada
        A: Imagina! Tenha uma ótima tarde.
        """,
        "likely_resolved",
        ("?modelo do seu celular", "lista de bloqueados"),
        "código por SMS",
        ("desligue o aparelho",),
    ),
    Conversation(
        "pt",
        """
        C: Bom dia, gostaria de cancelar a minha assinatura
        A: Bom dia! Obrigado pelo contato. Poderia me informar o e-mail da conta?
        C: sim, é [e-mail]
        A: Só um momento, por favor.
        A: Cancelei a sua assinatura e não haverá novas cobranças.
        C: ótimo, obrigado
        A: Por nada! Posso ajudar em algo mais?
        C: não, era só isso
        """,
        "",
        ("?e-mail da conta", "Cancelei"),
        "cancelar a minha assinatura",
    ),
    Conversation(
        "pt",
        """
        C: A câmara não grava vídeos
        A: Formate o cartão de memória no menu da câmara.
        C: Não adiantou, aparece a mesma mensagem.
        A: Experimente outro cartão de memória.
        C: Ainda não grava nada.
        """,
        "likely_failed",
        (),
        "câmara",
        ("Formate", "outro cartão"),
    ),
    Conversation(
        "nl",
        """
        C: Goedemiddag, mijn abonnement is verlengd maar ik kan geen films kijken
        A: Goedemiddag! Vervelend om te horen. Op welk apparaat kijkt u?
        C: op de tv
        A: Log uit en weer in op de app, alstublieft.
        C: Gedaan, maar het werkt nog steeds niet.
        A: Verwijder dan de app en installeer hem opnieuw.
        C: Top, hij doet het weer. Bedankt!
        A: Graag gedaan, fijne dag verder!
        """,
        "likely_resolved",
        ("?apparaat", "Verwijder dan de app"),
        "abonnement",
        ("Log uit",),
    ),
    Conversation(
        "nl",
        """
        C: Hoi, ik heb de verkeerde maat besteld en wil graag ruilen
        A: Hoi! Waarmee kan ik u helpen? Kunt u mij het bestelnummer geven?
        C: 5512
        A: Een momentje geduld alstublieft.
        A: Ik heb een retourlabel naar u verstuurd.
        C: Super, dank u wel
        A: Geen dank. Heeft u verder nog vragen?
        C: Nee hoor
        """,
        "",
        ("?bestelnummer", "retourlabel"),
        "verkeerde maat",
    ),
    Conversation(
        "nl",
        """
        C: De thermostaat reageert niet
        A: Vervang de batterijen van de thermostaat.
        C: Laat maar, ik heb het zelf gevonden: ik heb de stekker van de ketel erin gestoken en nu werkt het weer
        A: Fijn om te horen!
        """,
        "likely_resolved",
        ("stekker van de ketel",),
        "thermostaat",
    ),
    Conversation(
        "pl",
        """
        C: Dzień dobry, nie mogę się zalogować do panelu
        A: Dzień dobry, w czym mogę pomóc? Jaki komunikat się pojawia?
        C: błędne hasło
        A: Proszę wyczyścić pamięć podręczną przeglądarki.
        C: Niestety nadal to samo
        A: Proszę zresetować hasło przez link na stronie logowania.
        C: Teraz działa, dziękuję bardzo!
        A: Cieszę się. Miłego dnia!
        """,
        "likely_resolved",
        ("?komunikat", "zresetować hasło"),
        "zalogować do panelu",
        ("pamięć podręczną",),
    ),
    Conversation(
        "pl",
        """
        C: Witam, nie dostałem faktury za ostatnie zamówienie
        A: Witam, przepraszam za kłopot. Proszę o podanie numeru zamówienia.
        C: 99871
        A: Chwileczkę, już sprawdzam.
        A: Wysłałem fakturę na Pana adres e-mail.
        C: Jest, dzięki
        A: Nie ma za co. Czy mogę jeszcze w czymś pomóc?
        C: Nie, to wszystko
        """,
        "",
        ("?numeru zamówienia", "Wysłałem fakturę"),
        "faktury",
    ),
    Conversation(
        "pl",
        """
        C: Router gubi połączenie co kilka minut
        A: Proszę zmienić kanał wifi na 6.
        C: To nic nie dało.
        A: Proszę zaktualizować oprogramowanie routera.
        C: Zrobiłem to i wciąż zrywa. Nie działa.
        """,
        "likely_failed",
        (),
        "Router",
        ("kanał wifi", "oprogramowanie"),
    ),
    Conversation(
        "zh",
        """
        C: 你好
        A: 您好，请问有什么可以帮您？
        C: 我的打印机连不上无线网络了
        A: 请问您的打印机是什么型号？
        C: M28
        A: 请重启一下打印机。
        C: 试过了，还是连不上。
        A: 好的，请在菜单里恢复网络设置，然后重新输入密码。
        C: 现在可以了，谢谢！
        A: 不客气，祝您生活愉快！
        """,
        "likely_resolved",
        ("?型号", "恢复网络设置"),
        "打印机连不上",
        ("重启一下",),
    ),
    Conversation(
        "zh",
        """
        C: 您好，我想修改发票抬头
        A: 您好，感谢您的咨询。请提供一下您的订单号。
        C: 66120
        A: 请稍等。
        A: 我已经帮您修改了发票抬头，新的发票会发到您的邮箱。
        C: 好的，非常感谢
        A: 请问还有其他问题吗？
        C: 没有了
        """,
        "",
        ("?订单号", "修改了发票抬头"),
        "发票抬头",
    ),
    Conversation(
        "zh",
        """
        C: 游戏一打开就闪退
        A: 请清除缓存后再试。
        C: 没用，还是闪退。
        A: 请卸载后重新安装。
        C: 重装了也不行，问题还是没有解决。
        """,
        "likely_failed",
        (),
        "闪退",
        ("清除缓存", "重新安装"),
    ),
    Conversation(
        "ja",
        """
        C: こんにちは。
        A: お問い合わせありがとうございます。どのようなご用件でしょうか。
        C: アプリの通知が届かなくなりました。
        A: ご不便をおかけして申し訳ございません。機種を教えていただけますか。
        C: Pixelです。
        A: 端末を再起動してみてください。
        C: やってみましたが、まだ届きません。
        A: 設定画面で通知の許可をオンにしてください。
        C: 届きました！直りました、ありがとうございます。
        A: よかったです。他に何かございますか。
        C: 大丈夫です。
        """,
        "likely_resolved",
        ("?機種", "通知の許可"),
        "通知が届かなくなりました",
        ("再起動",),
    ),
    Conversation(
        "ja",
        """
        C: お世話になっております。領収書を再発行していただきたいです。
        A: お世話になっております。ご注文番号をお知らせください。
        C: 3390です。
        A: 少々お待ちください。
        A: 領収書を再発行し、メールでお送りしました。
        C: 助かりました、ありがとうございます。
        A: とんでもないです。また何かございましたらお気軽にご連絡ください。
        """,
        "",
        ("?ご注文番号", "再発行し"),
        "領収書",
    ),
    Conversation(
        "ja",
        """
        C: 動画が途中で止まります。
        A: ブラウザのキャッシュを削除してください。
        C: 変わりませんでした。
        A: 別のブラウザでお試しください。
        C: 同じ症状です。まだ止まります。
        """,
        "likely_failed",
        (),
        "動画が途中で止まります",
        ("キャッシュ", "別のブラウザ"),
    ),
)
