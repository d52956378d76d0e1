"""Count tokens by asking a provider: exact, over the network, and only on request.

No other package uses the network. This one does where a provider is named: in `bk.endpoints.provider_counter`, or in
`budgetkit count --ask`; `budgetkit.counter` never asks a provider.

Keys come from the environment and are never stored; answers are kept on disk, so that the same
request is asked about once. A text is counted as the only message of a request, less what the request costs
without it, which is what it costs with the one letter "a" less one token.
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
