"""Values from JSON to typed objects, and back."""
