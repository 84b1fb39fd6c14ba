"""What every long-running part shares: loops, leadership, heartbeats, hosts, stopping."""
