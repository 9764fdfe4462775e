"""OpenTelemetry out: spans computed from slot events, and their way to any OTLP/HTTP endpoint."""
