"""What is true: values and rules, without input or output."""
