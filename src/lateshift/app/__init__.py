"""What a program talks to: `Lateshift`, and one part for each thing that it declares."""
