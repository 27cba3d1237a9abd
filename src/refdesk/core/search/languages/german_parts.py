"""The words that are most frequent in German compounds: once one of them is recognised, the rest is known, too."""

PARTS = """
abbild abend abfall abfrage abgabe abgas ablauf ablehnung abonnement abrechnung absatz abschluss abschnitt absicherung
abstand abstimmung abteilung abwehr abwesenheit achse adapter adel administration administrator adresse affäre agentur
akademie akte aktie aktion aktivierung alarm album alkohol allgemein alltag alter amt analyse anbieter änderung anfang
anfrage angabe angebot angriff angst anhang ankauf anlage anmeldung anpassung anruf ansatz ansicht anspruch anstalt
anteil antrag antwort anwalt anweisung anwendung anzeige apfel apparat arbeit arbeiter architekt archiv argument arm
armee art artikel arzt assistent atom aufgabe auflage auflösung aufnahme aufruf aufstand auftrag auftritt aufwand auge
ausbau ausbildung ausdruck ausfall ausflug ausgabe ausgang auskunft ausland auslöser ausnahme aussage auswahl ausweis
auszug auto autor bach bad bahn balken ball band bank bar basis batterie bau bauch bauer baum bauteil beamter becken
bedarf bedeutung bedienung bedingung befehl befund begriff begründung behandlung behörde beitrag belastung beleg
benachrichtigung benutzer berater beratung berechnung berechtigung bereich berg bericht beruf beschreibung beschwerde
besitz bestand bestätigung bestellung besuch beteiligung betrag betreff betreuung betrieb bett bewegung beweis
bewerber bewertung beziehung bezirk bezug bibel bibliothek bier bild bildschirm bildung bindung biologie blatt blei
blick block blume blut boden bogen bombe bord börse botschaft brand brauch brief brille browser brücke bruder brunnen
brust buch buchhaltung buchstabe bucht buchung budget bühne bund bundes burg bürger bürgermeister büro bus cache chef
chemie chip chor christ client cloud cluster code computer container dach dampf darsteller darstellung datei daten
datenbank datum dauer decke demokratie denkmal design detail dialog diagramm dichte dichter dienst dienstleister
dienstleistung diktat direktor diskette disziplin doktor dokument domain domäne dorf draht drama dreh drittel drogen
druck drucker dünger durchfluss durchschnitt durchsuchung dynamik ebene ecke eigenschaft eigentum eigentümer eil eimer
einbau eindruck einfluss einführung eingabe eingang eingriff einheit einkauf einkommen einladung einrichtung einsatz
einstellung eintrag eintritt einwohner einzel eis eisen eisenbahn element eltern empfang empfänger ende energie engel
entfernung entscheidung entwickler entwicklung entwurf erbe erde ereignis erfahrung erfassung erfolg ergänzung
ergebnis erhebung erinnerung erkennung erklärung erlaubnis ernährung ernte eröffnung ersatz erstattung ertrag
erzeugung erzieher esel essen etage export fabrik fach faden fahne fahrer fahrrad fahrt fahrzeug faktor fall falle
familie farbe faser fassung fehler feier feind feld fels fenster ferien fern fernseher fest festival festplatte fett
feuer feuerwehr fieber figur film filter finanz finger firma fisch fläche flagge flasche fleisch flieger flucht
flüchtling flug flugzeug fluss flüssigkeit flut folge form format formel formular forscher forschung forst foto frage
frau freiheit fremd freund freundschaft frieden frist front frucht früh führer führung funk funktion fuß fußball
futter gang garten gas gast gebäude gebet gebiet gebirge gebrauch gebühr geburt gedächtnis gedicht gefahr gefängnis
gefäß gefühl gegend gegner gehalt geheim geheimnis gehirn geist geld gelenk gemälde gemein gemeinde gemeinschaft
gemüse generation generator genuss geographie gerät gericht geruch geschäft geschichte geschlecht geschwindigkeit
gesellschaft gesetz gesicht gespräch gestalt gesundheit getränk getreide gewalt gewässer gewebe gewerbe gewicht gewinn
gewitter gift gipfel gitarre gitter glas glaube gleich gleichung gleis glied glocke glück gold gott grab grad graf
grafik gramm gras grenze griff größe groß grund gründung gruppe gut gutachten guthaben haar hafen haft haftung halb
hals halt haltung hand handel händler handlung handwerk handy haupt haus haushalt haut heer heft heil heim heimat
heizung held helm hemd herbst herd herkunft herr herrschaft hersteller herstellung herz hilfe himmel hinter hinweis
hirsch hitze hobby hoch hochschule hochzeit hof höhe höhle holz homepage honorar horizont hotel hund hunger hut hütte
idee impfung import index industrie infektion information ingenieur inhalt insekt insel installation instanz institut
instrument inszenierung interesse internet investition jagd jahr jahrhundert journal jude jugend juli jung jungfrau
juni jura kabel kabinett kaffee kaiser kalender kalk kälte kamera kammer kampf kanal kandidat kanone kante kapelle
kapital kapitel karte kasse kasten katastrophe kategorie käufer kauf kegel keller kennwort kern kette kilo kind kino
kirche kiste klage klang klasse klassik klavier kleid kleidung klein klima klinik kloster knochen knoten koch kohle
kollege kolonie komitee kommando kommentar kommission kommunikation komödie konfession konferenz konfiguration
konflikt kongress könig königin konstruktion kontakt konten konto kontrolle konzept konzern konzert kopf kopie korb
korn körper korrektur kosten kraft kragen kran kranken krankenhaus krankheit kredit kreis kreuz krieg krise kritik
krone küche kugel kuh kühlung kultur kunde kündigung kunst künstler kupfer kurs kurve kurz küste labor lack ladung
lager lampe land landschaft landwirtschaft länge langzeit last lauf leben leder legende lehr lehrer leib leicht
leistung leiter leitung lektion lernen lese leser licht liebe lied lieferung linie link liste literatur lizenz loch
lohn lokal lösung löschung luft lunge macht mädchen magen magnet mahl mail maler mangel mann mannschaft mantel markt
marke maschine masse material mathematik mauer maximal medaille medien medikament medizin meer mehl mehr mehrheit
meile meister meldung menge mensch menü merkmal messe messer messung metall meter methode miete milch militär
millionen mineral minister ministerium minute mission mitarbeiter mitglied mittag mittel mitte mittelalter möbel mode
modell modul mond monat mord motiv motor mühle müll mund münze museum musik musiker muskel muster mutter nachbar
nachfolger nachmittag nachricht nacht nagel nahrung name nation natur nebel neben nerv netz netzwerk neu niederlage
niveau nord not note notfall nummer nuss nutzen nutzer nutzung ober objekt obst ofen offizier ohr öl oper operation
opfer option orchester orden ordner ordnung organ organisation original ort ost ozean paar packung paket palast panzer
papier papst parameter park partei partie partner passwort patent patient pause pension periode person personal pfad
pfarrer pferd pflanze pflege pflicht phase philosophie physik pilot pilz pixel plan planet planung plastik platte
plattform platz poesie pol politik politiker polizei port portal portion position post postfach präsident praxis preis
presse priester prinz prinzip privat probe problem produkt produktion produzent professor profil programm projekt
protein protest protokoll provinz prozent prozess prüfung psychologie publikum pumpe punkt puppe quadrat qualität
quartal quelle quer rad radio rahmen rand rang rasse rat raub rauch raum reaktion reaktor rechnung rechner recht rede
reform regal regel regelung regen regierung regime region regisseur register reich reife reihe reinigung reise reiter
rekord religion rennen rente reparatur republik reserve ressource rest restaurant revolution rhythmus richter
richtlinie richtung ring ritter rohr rohstoff rolle roman rose rot route router rück rückgabe rücken rückruf
rücksendung ruf ruhe rund runde rüstung saal sache saison salz sammlung sand sänger satz säule säure schaden schädel
schach schacht schaf schale schalter schatten schatz schauspieler scheibe schein schema schicht schicksal schiff
schild schirm schlacht schlaf schlag schlange schließung schloss schlüssel schluss schmerz schmuck schnee schnell
schnitt schnittstelle schokolade schrank schraube schrift schriftsteller schritt schuh schuld schule schüler schulung
schuss schutz schwarz schwein schwelle schwer schwert schwester schwimmen see seele segel seite sekretär sekunde
selbst sender sendung senat serie server service sicherheit sicherung sicht siedlung sieg signal silber sinn sitz
sitzung skript software sohn soldat sommer sonder sonne sozial spalte spannung speicher speise sperre spiegel spiel
spieler spitze sport sprache sprecher sprung spur staat stab stadt stadion stahl stamm stand standard standort stärke
start station statistik statut staub stein stelle stellung stern steuer steuerung stich stichwort stift stil stimme
stimmung stock stoff störung strafe strahl strahlung strand strang straße strategie strecke streit streik strich strom
strömung struktur stück student studie studio studium stufe stuhl stunde sturm stütze suche süd summe symbol symptom
synchron system szene tabelle tafel tag takt tal tank tanz tarif tasche tastatur taste tat tätigkeit taube tausch
technik technologie tee teil teilchen teilnahme teilnehmer telefon telegramm teller tempel temperatur tennis teppich
termin test teufel text theater thema theologie theorie therapie thermo these ticket tief tier tinte tisch titel
tochter tod ton topf tor tour tourismus tradition trage train training transport traum treffen treiber trend treppe
trieb trink tritt trocken tropfen truppe tuch tunnel tür turbine turm turnier typ übersetzung übersicht übertragung
überwachung übung ufer uhr umfang umgebung umlauf umsatz umschlag umwelt umzug unfall union universität unter
unterhalt unternehmen unterricht unterschrift unterstützung untersuchung update urkunde urlaub ursache ursprung urteil
vater verband verbindung verbot verbrauch verbraucher verbrechen verein verfahren verfassung verfolgung verfügung
vergleich verhalten verhältnis verhandlung verkauf verkehr verlag verlauf verlust vermittlung vermögen verpackung
versand version versicherung versorgung verstand versuch verteidigung verteiler vertrag vertreter vertrieb verwaltung
verzeichnis verzögerung video vieh viertel virus vogel volk voll volumen vorbereitung vorder vorgang vorhang vorlage
vorlesung vorname vorschau vorschlag vorschrift vorsitz vorstand vorstellung vorteil vortrag vulkan wachstum waffe
wagen wahl währung wald wand wandel wanderung ware warnung wartung wasser wechsel weg wehr weib weihnacht wein weise
weiß weite welle welt weltkrieg wende werbung werk werkstatt werkzeug wert wesen west wettbewerb wetter widerstand
wiederherstellung wild wille wind winkel winter wirkung wirtschaft wissen wissenschaft wissenschaftler witwe woche
wohn wohnung wolf wolke wort wunde wunder wunsch würfel wurzel wüste zahl zahlung zahn zauber zeichen zeichnung zeile
zeit zeitschrift zeitung zelle zellen zelt zentral zentrum zertifikat zeug zeuge zimmer zins zitat zoll zone zucker
zufall zug zugang zugriff zukunft zulassung zunge zusammenarbeit zusammenhang zusatz zustand zustellung zweck zweig
zyklus
"""
