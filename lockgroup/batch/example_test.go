package batch_test

import (
	"context"
	"fmt"
	"os"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock/fslock"
)

// The same program on any number of hosts: each page is converted once.
func ExampleRun() {
	shared, err := os.MkdirTemp("", "shared-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(shared)
	src, err := fslock.Open(fslock.Options{Base: shared, Group: "convert"})
	if err != nil {
		panic(err)
	}
	defer src.Close()

	var jobs []batch.Job
	for page := range 10 {
		jobs = append(jobs, batch.Job{
			Name: fmt.Sprintf("page%02d", page),
			Work: func(ctx context.Context, _ batch.Attempt) error { return convert(ctx, page) },
		})
	}
	report, err := batch.Run(context.Background(), src, jobs, batch.Options{Workers: 4, Retries: 1})
	fmt.Printf("%d of %d done, %d failed: %v\n", report.Done, report.Total, report.Failed, err)
	fmt.Println(report.Failures[0].Name, report.Failures[0].Why)
	// Output:
	// 9 of 10 done, 1 failed: not all jobs have succeeded
	// page07 page 7 is torn
}

func convert(_ context.Context, page int) error {
	if page == 7 {
		return fmt.Errorf("page %d is torn", page)
	}
	return nil
}
