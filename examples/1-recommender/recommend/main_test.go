package main

import "testing"

// TestRecommendations: what others watched with the same films is recommended, however many workers have counted.
func TestRecommendations(t *testing.T) {
	viewers := []viewer{{"ann", []string{"alien", "brazil"}}, {"bob", []string{"alien", "brazil", "cube"}}, {"cem", []string{"cube", "dune"}}}
	want := "ann\tcube,dune\nbob\tdune\ncem\talien,brazil\n"
	for workers := 1; workers <= 4; workers++ {
		if got := string(recommendations(viewers, train(viewers, workers))); got != want {
			t.Errorf("%d workers recommend\n%s, want\n%s", workers, got, want)
		}
	}
}

// TestParse reads training commands as tasks override them.
func TestParse(t *testing.T) {
	for command, want := range map[string][2]int{
		"train": {1, 1}, "train -e 5": {1, 5}, "mpirun -np 4 train": {4, 1}, "mpirun -np 4 train -e 2": {4, 2},
		"": {}, "rm -rf /": {}, "mpirun -np 0 train": {}, "mpirun -np x train": {}, "train -e": {}, "train -e -1": {}, "mpirun -np 4": {},
	} {
		workers, epochs, err := parse(command)
		if (err != nil) != (want == [2]int{}) || [2]int{workers, epochs} != want {
			t.Errorf("%q: %d workers, %d epochs, %v", command, workers, epochs, err)
		}
	}
}
