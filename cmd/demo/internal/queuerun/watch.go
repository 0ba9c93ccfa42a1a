package queuerun

import (
	"context"
	"fmt"
	"time"
)

const (
	frame = 50 * time.Millisecond // of the progress bar
	look  = time.Second           // a look into the queue costs Redis more than a frame is worth

	// stall is how long nothing may start beyond the time that the limit itself takes.
	stall = 15 * time.Second

	// outage is how long Redis may not answer.
	outage = 5 * time.Second
)

// watch returns when all jobs are done, when those that are not are nowhere in the queue either, or when ctx ends. An
// error says why it gave up before that.
func (d *demo) watch(ctx context.Context) error {
	frames, looks := time.NewTicker(frame), time.NewTicker(look)
	defer frames.Stop()
	defer looks.Stop()
	var (
		moved    = time.Now() // when the last job started
		answered = moved      // when Redis last did
		seen     int          // starts
		empty    int          // looks in a row at an empty queue
	)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-frames.C:
			all, done, starts := d.books.progress()
			d.screen.show(done)
			if done == all {
				return nil
			}
			if starts != seen {
				moved, seen = time.Now(), starts
			}
			if idle := time.Since(moved); idle-stall > d.lim.Rate.TimeFor(1) {
				return fmt.Errorf("nothing has started for %v", idle.Round(time.Second))
			}
		case <-looks.C:
			q, err := d.store.Inspector.GetQueueInfo(d.store.Queue)
			switch {
			case err != nil && time.Since(answered) > outage:
				return fmt.Errorf("no answer from Redis for %v: %w", time.Since(answered).Round(time.Second), err)
			case err != nil:
				continue
			case q.Pending+q.Active+q.Scheduled+q.Retry > 0:
				empty = 0
			default:
				empty++
			}
			answered = time.Now()
			// Twice: a job that ended between the count of the done and this look is in neither.
			if empty == 2 {
				return nil
			}
		}
	}
}
