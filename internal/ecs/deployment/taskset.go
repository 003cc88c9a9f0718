package deployment

import "math"

// Scaled returns the desired count of a task set: its share of the service's, rounded up (API_TaskSet).
func Scaled(desired int, percent float64) int {
	const noise = 1e-9 // floating-point error that must not round up to one more task
	return int(math.Ceil(float64(desired)*percent/100 - noise))
}
