package taskgroup

import (
	"path/filepath"
	"regexp"
	"syscall"
)

// On a hybrid machine the hierarchy of the second version is at /unified, beside those of the first, and limits nothing. runc makes the groups of
// its containers there too, with the task's above them, and takes away only its own.

func hybrid(root string) string { return filepath.Join(root, "unified") }

var taskID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// removeLeftovers removes what is left of tasks' groups in the hierarchy of the second version alone: a task that isn't over, whoever's it is, has
// groups in the others. Only empty groups can be removed.
func removeLeftovers(root string) {
	left, _ := filepath.Glob(filepath.Join(hybrid(root), path("*"))) // the pattern is well-formed
	for _, dir := range left {
		task := filepath.Base(dir)
		if all, _ := filepath.Glob(filepath.Join(root, "*", path(task))); taskID.MatchString(task) && len(all) == 1 {
			syscall.Rmdir(dir) //nolint:errcheck // it does no harm if it stays
		}
	}
}
