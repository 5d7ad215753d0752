"""Spanish."""

from .record import FullStops, Rules

RULES = Rules(
    neighbour="Eso lo sé.",
    digits=".,",
    separators=".,",
    full_stops=FullStops(
        before="sr sra srta sres sras dr dra dres dras prof profa ing lic arq gral cnel cap tte sto sta fr mons d dña dª excmo excma ilmo ilma rvdo hno p.ej p.e ej aprox av avda cf esq dpto c.p",
        number="núm núms no nº n pág págs p pp art arts vol vols cap caps fig figs tel tít tomo",
        either="ee.uu u.s s.a s.l a.m p.m a.c d.c a.de.c d.de.c cía ltda jr ff.aa rr.hh ud uds vd vds",
        list="etc et.al",
        starter="Él Ella Ellos Ellas Yo Tú Usted Ustedes Nosotros Nosotras El La Los Las Lo Un Una Unos Unas Pero Y O Entonces Luego Después Antes Cuando Si Como Para Por En Con Sin De Desde A Al Que Qué Quién Cómo Dónde Cuándo Mi Mis Tu Tus Su Sus Nuestro Nuestra Este Esta Estos Estas Esto Eso Ese Esa Aquel Aquella Sí No Ahora Hoy Mañana Ayer Aquí Allí También Ya Hay Es Son Está Están Gracias Porque Además Todo Todos Así Se Me Te Nos",
        label="plan vitamina grupo tipo clase opción versión punto parte puerta línea hepatitis lenguaje letra",
        word="no de en un para bien nos da entre sobre contra mar ante tras des di micro ex",
    ),
)
