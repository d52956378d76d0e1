"""What a pipeline adds to the kit: the shell and the gate, endpoints, adapters of agent frameworks, redaction."""
