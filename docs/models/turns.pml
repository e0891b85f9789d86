/* turns.pml: does somebody get to cook? The lock of watch.pml, with chefs that are not delayed: everything that is due is done
 * before the clock ticks, in any order. They come at any time.
 *
 * After the last swap the kitchen is idle for W at most, and for that long once more if chefs that were out of step
 * replaced each other's values. IDLE is the longest time without anybody at work that is accepted beyond the first watch.
 * BLIND 1, the wrong variant: a chef does not look again before it swaps. Two of them replace each other's values for ever.
 */
#ifndef CHEFS
#define CHEFS 2
#endif
#ifndef W
#define W 3
#endif
#ifndef END
#define END 30
#endif
#ifndef IDLE
#define IDLE (W + 1)
#endif
#ifndef BLIND
#define BLIND 0
#endif
#define NEVER 255

byte now = 1, idle, cell;
byte due[CHEFS], until[CHEFS];

active proctype clock() {
  byte i; bool ready, busy;
  do
  :: atomic {
       now < END;
       ready = true; busy = false; i = 0;
       do
       :: i < CHEFS -> ready = ready && due[i] > now; busy = busy || now < until[i]; i++
       :: else -> break
       od;
       if
       :: ready ->
          if :: busy -> idle = 0 :: else -> idle++ fi;
          now++;
          assert(idle <= W + IDLE)
       :: else
       fi
     }
  od
}

proctype chef(byte me) {
  byte seen, old;
  atomic { select (seen : 1 .. W); due[me] = seen }
  atomic { now >= due[me] -> seen = cell; due[me] = now + W }
  do
  :: atomic {
       now >= due[me] ->
       if
       :: !BLIND && cell != seen -> seen = cell; due[me] = now + W; goto again
       :: else
       fi
     }
     atomic {
       old = cell; cell++;
       if :: old == seen -> until[me] = now + W :: else fi;
       seen = cell; due[me] = now + W; old = 0
     }
again: skip
  od
}

init { atomic { byte p; for (p : 0 .. CHEFS - 1) { due[p] = 1; run chef(p) } } }
