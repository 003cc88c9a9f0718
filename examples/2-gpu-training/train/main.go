// Command gpu-training stands in for a training benchmark. For as many seconds as STEPS says, it prints the GPUs that it can
// see and a rate that grows with their number. It computes on the CPU, so it also runs on machines without a GPU.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	gpus := visible()
	var devices []string
	for i := range gpus {
		devices = append(devices, fmt.Sprintf("'/gpu:%d'", i))
	}
	fmt.Printf("NVIDIA_VISIBLE_DEVICES=%s\n", os.Getenv("NVIDIA_VISIBLE_DEVICES"))
	fmt.Printf("devices: [%s]\n", strings.Join(devices, ", "))
	steps, err := strconv.Atoi(os.Getenv("STEPS"))
	if err != nil {
		steps = 3
	}
	total := 0.0
	for step := range steps {
		rate := train(len(gpus))
		total += rate
		fmt.Printf("step %d: images/sec: %.1f\n", step+1, rate)
	}
	if steps > 0 {
		fmt.Printf("total images/sec: %.2f\n", total/float64(steps))
	}
}

// visible returns the ids of the GPUs that the container may use.
func visible() []string {
	ids := os.Getenv("NVIDIA_VISIBLE_DEVICES")
	if ids == "" || ids == "void" || ids == "none" {
		return nil
	}
	return strings.Split(ids, ",")
}

// train computes for a second and returns the images per second.
func train(gpus int) float64 {
	start := time.Now()
	images := 0
	sum := uint64(1)
	for time.Since(start) < time.Second {
		for range 100000 {
			sum = sum*6364136223846793005 + 1442695040888963407
		}
		images += max(gpus, 1)
	}
	if sum == 0 {
		fmt.Println("never printed: keeps the loop above from being optimized away")
	}
	return float64(images) / time.Since(start).Seconds()
}
