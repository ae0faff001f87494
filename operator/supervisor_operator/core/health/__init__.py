"""One answer to "is it well, why not, and what now": the words of the API, the plugin, the page."""
