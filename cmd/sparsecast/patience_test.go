package main

import "time"

// patience is how long a test waits for what must come. Nothing is measured by it: it only turns a hang into a failure.
const patience = 3 * time.Minute
