"""What makes several processes one server: records, messages and leases in a backend."""
