"""Exact token counts from providers, requested over the network only if asked for.

No other package uses the network. This one does so only if you name a provider, in `bk.endpoints.provider_counter` or
`budgetkit count --ask`; `budgetkit.counter` never does.

Keys are read from the environment and never stored. Answers are cached on disk, so that each request is sent once. A
text is counted as the only message of a request, less the tokens of the request without it, which are those of a
request with the single letter "a" less one token.
"""

from budgetkit.files import extra

with extra("endpoints", "asking a provider"):
    from budgetkit.extras.endpoints.asking import (
        ENDPOINTS,
        Endpoint,
        EndpointError,
        ProviderCounter,
        provider_counter,
    )

__all__ = [
    "ENDPOINTS",
    "Endpoint",
    "EndpointError",
    "ProviderCounter",
    "provider_counter",
]
