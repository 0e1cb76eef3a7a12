"""What is remembered: the only room that speaks SQL."""
