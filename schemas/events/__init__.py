"""The event types, by family: names and fields are for ever (infra/adr/0001). `catalogue` encodes and decodes them."""
