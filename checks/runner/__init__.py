"""Engine of a run: its plan, the execution of statements, and what stands for what."""
