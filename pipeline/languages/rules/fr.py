"""French."""

from .record import FullStops, Rules

RULES = Rules(
    neighbour="Je le sais.",
    digits=".,",
    full_stops=FullStops(
        before="M MM Mme mme Mmes mmes Mlle mlle Mlles mlles Mgr mgr dr Dr Drs Pr prof Prof Vve vve St st Ste ste cf p.ex par.ex env c.-à-d c.à.d av apr i.e e.g bd resp Col Gén Cdt Cap Lt",
        number="n no nº p pp art chap vol t fig éd tél ch sect janv févr juil sept oct nov déc",
        either="s j.-c s.a ltd inc cie a.m p.m m.a jr",
        list="etc et.al",
        starter="Il Elle Ils Elles Je Tu On Nous Vous Ce Cela Ça Le La Les Un Une Des Du De Mais Et Ou Donc Or Ni Car Puis Ensuite Alors Après Avant Quand Lorsque Si Comme Pour Dans En Sur Avec Sans Chez Par Qui Que Quoi Où Comment Pourquoi Mon Ma Mes Ton Ta Tes Son Sa Ses Notre Votre Leur Leurs Oui Non Merci Voilà Voici Aujourd Demain Hier Maintenant Ici Là Cette Cet Ces Tout Tous Enfin Bien Bref Parce C J L D N S Toutefois Cependant Pourtant Ainsi Certains Certaines Chaque",
        label="plan vitamine groupe type classe option version point partie bâtiment porte ligne langage bibliothèque vitamines",
        word="ex sec",
    ),
)
