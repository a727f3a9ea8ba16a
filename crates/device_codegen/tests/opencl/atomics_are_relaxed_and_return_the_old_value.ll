; run 1 groups of 1
; with 5 7 0xfffffffe 9 3 1
; gives 8 6 0xfffffffe 2 4 1 5 7 0xfffffffe 9 3 1
define void @atomics(ptr %out) section ".nvvm.kernel" {
start:
  %p1 = getelementptr inbounds i32, ptr %out, i64 1
  %p2 = getelementptr inbounds i32, ptr %out, i64 2
  %p3 = getelementptr inbounds i32, ptr %out, i64 3
  %p4 = getelementptr inbounds i32, ptr %out, i64 4
  %p5 = getelementptr inbounds i32, ptr %out, i64 5
  %a = atomicrmw add ptr %out, i32 3 monotonic, align 4
  %b = atomicrmw xor ptr %p1, i32 1 monotonic, align 4
  %c = atomicrmw min ptr %p2, i32 4 monotonic, align 4
  %d = atomicrmw umin ptr %p3, i32 2 monotonic, align 4
  %e.pair = cmpxchg ptr %p4, i32 3, i32 4 monotonic monotonic, align 4
  %e = extractvalue { i32, i1 } %e.pair, 0
  %f.bit = extractvalue { i32, i1 } %e.pair, 1
  %f = zext i1 %f.bit to i32
  %q0 = getelementptr inbounds i32, ptr %out, i64 6
  store i32 %a, ptr %q0, align 4
  %q1 = getelementptr inbounds i32, ptr %out, i64 7
  store i32 %b, ptr %q1, align 4
  %q2 = getelementptr inbounds i32, ptr %out, i64 8
  store i32 %c, ptr %q2, align 4
  %q3 = getelementptr inbounds i32, ptr %out, i64 9
  store i32 %d, ptr %q3, align 4
  %q4 = getelementptr inbounds i32, ptr %out, i64 10
  store i32 %e, ptr %q4, align 4
  %q5 = getelementptr inbounds i32, ptr %out, i64 11
  store i32 %f, ptr %q5, align 4
  ret void
}
