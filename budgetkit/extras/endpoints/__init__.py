"""Exact token counts from providers, over the network and only on request.

No other package uses the network. This package does so only if you name a provider, in `bk.endpoints.provider_counter`
or `budgetkit count --ask`; `budgetkit.counter` never does.

Keys are read from the environment and never stored. Answers are cached on disk, so that each request is sent once. A
text is counted as the only message of a request, minus the request's overhead. The overhead is the count of a request
with the single letter "a", minus 1.
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
