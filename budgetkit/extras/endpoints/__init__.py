"""What goes to a provider and comes back: counting by asking it, and the calls of a client, watched.

Counting by asking is exact, over the network, and only for those who ask for it by name.

The one door to the network. It opens where a provider is named: in `bk.provider_counter`, in this module, or in
`budgetkit count --ask`; `budgetkit.counter` never makes a counter of it.

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
from budgetkit.extras.endpoints.magic import load_ipython_extension
from budgetkit.extras.endpoints.watching import watch

__all__ = [
    "ENDPOINTS",
    "Endpoint",
    "EndpointError",
    "ProviderCounter",
    "load_ipython_extension",
    "provider_counter",
    "watch",
]
