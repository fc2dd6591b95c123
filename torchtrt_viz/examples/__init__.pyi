from . import serving_pd as serving_pd
