package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/plane"
)

type checkCmd struct {
	Data   string `default:"~/.pintle" type:"path" help:"Directory of a control plane's state, which must not run."`
	Repair bool   `help:"Repair what is damaged: keep all that can be read, and put damaged files aside as *.damaged."`
}

// Run reads everything in a data directory, and exits with 1 where something is damaged and was not repaired.
func (c *checkCmd) Run(ctx context.Context) error {
	damage, err := plane.Check(ctx, c.Data, c.Repair)
	printDamage(os.Stdout, damage, c.Repair)
	switch {
	case err != nil:
		return err
	case len(damage) == 0:
		fmt.Printf("All is well in %s.\n", c.Data)
	case c.Repair:
		fmt.Printf("Repaired. What was damaged is kept beside, in files named *.damaged.\n")
	default:
		fmt.Printf("Nothing was changed. To repair it: pintle check --data %s --repair\n", c.Data)
		return exitCode(1)
	}
	return nil
}

func printDamage(w io.Writer, damage []file.Damage, repaired bool) {
	if len(damage) == 0 {
		return
	}
	header := "A REPAIR"
	if repaired {
		header = "THE REPAIR"
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "FILE\tBYTE\tWHAT IS WRONG\t%s\n", header) //nolint:errcheck // as for all that is printed
	for _, d := range damage {
		offset := "-"
		if d.Offset >= 0 {
			offset = fmt.Sprint(d.Offset)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", d.Path, offset, d.What, d.Repair) //nolint:errcheck // as above
	}
	table.Flush() //nolint:errcheck // as above
}
