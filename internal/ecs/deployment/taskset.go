package deployment

import "math"

// Scaled is how many tasks a task set is to have: its share of the service's desired count, rounded up (API_TaskSet).
func Scaled(desired int, percent float64) int {
	const noise = 1e-9 // that a product of a fraction may be too much by
	return int(math.Ceil(float64(desired)*percent/100 - noise))
}
