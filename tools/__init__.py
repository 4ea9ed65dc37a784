"""Programs for those who work on Ownmind; never imported by the app."""
