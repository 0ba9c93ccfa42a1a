// Package sluicetest checks that a sluice.Limiter keeps the contract, sentence by sentence.
//
//	func TestMine(t *testing.T) {
//		sluicetest.Run(t, sluicetest.Kind{
//			New: func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
//				return mine.New(rate, burst)
//			},
//		})
//	}
//
// Every case is a subtest named for the promise it checks, behind the name of the file in which it stands:
// "leave/all behind move up at once" is in leave.go. Most run in a bubble of testing/synctest, where time is virtual
// and every duration is compared to the nanosecond. A bubble ends only when nothing is left in it, so each case also
// checks that no goroutine stays behind.
//
// It is for tests only: it imports testing.
package sluicetest
