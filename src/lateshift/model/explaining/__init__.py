"""Why a job is where it is: facts from the store in, reasons for people and programs out. Pure."""
