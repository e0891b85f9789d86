// Package fakecloudshell is a CloudShell server for tests: the part of its
// automation API ("TestShell XML-RPC", port 8029) that the reservation mutex
// needs, over real HTTP or HTTPS on the loopback interface.
//
// A [Server] has users, service models and reservations. Every request can meet a
// [Fault], as an [Injector] decides:
//
//	server := fakecloudshell.Start(t, fakecloudshell.Options{
//		Users:        []fakecloudshell.User{{Name: "admin", Password: "s3cret", Admin: true}},
//		Models:       []fakecloudshell.Model{fakecloudshell.OwnedMutex()},
//		Reservations: []fakecloudshell.Reservation{{ID: "7b3c9ad2-..."}},
//	})
//	// the third is carried out, and nobody is told
//	server.Inject(fakecloudshell.At(fakecloudshell.AddService, 3, fakecloudshell.Fault{Reply: fakecloudshell.Dropped}))
//
// # What is known
//
// The following is what the public clients, schemas, documents and recorded
// answers agree on.
//
//   - One POST of plain XML per call to /ResourceManagerApiService/METHOD. The
//     root element bears the name of the method, its children are the parameters.
//   - The session is a token in the header Authorization, MachineName=...;Token=...,
//     which is split at the first "=" of a pair, since tokens end in "=". Logon and
//     SecureLogon give a new one; what their own header says does not matter.
//   - A call that fails is HTTP 200 with Success="false", Error and ErrorCode. Code
//     100 means almost anything, 101 an unknown method, 118 a wrong password or a
//     token that is not valid. A success has ErrorCode 0 and no Error.
//   - GetReservationDetails may show what was true up to 5 seconds ago, unless
//     disableCache is true.
//   - Adding a service with an alias that is taken fails with code 100, "Service
//     with given alias already exists". Of concurrent ones exactly one succeeds.
//   - Removing is by alias, whoever added the service. No answer tells who that
//     was, or when.
//   - Sessions end after 5 hours. Those made from the token that a script or driver
//     got with its command end with the command.
//
// # What is not known
//
// Where nobody has written down what the real server does, it is a field of
// [Policy], and the default is what a client has most trouble with: parameters in
// another order are refused, a read with disableCache does not freshen the cache, a
// change does not empty it. A client that wants to work with the real server has to
// pass with each value of each field.
//
// Not modelled are resources, routes, apps, pools, topologies, domains and who may use
// which reservation, sessions and reservations that end by time, calls that the mutex
// does not need, the REST API on port 9000, and clients of 6.x, which had no tokens.
package fakecloudshell
