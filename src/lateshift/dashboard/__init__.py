"""The dashboard: pages for people, rendered here, over the handlers that the API has."""
