; Frozen undef, which is the same at each use, becomes zero.

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %frozen = freeze i32 %a
  store i32 %frozen, ptr %out, align 4
  %nothing = freeze i32 poison
  store i32 %nothing, ptr %out, align 4
  ret void
}
