"""What `safelight bench` measures, and how."""
