"""What is sent out: webhooks."""
