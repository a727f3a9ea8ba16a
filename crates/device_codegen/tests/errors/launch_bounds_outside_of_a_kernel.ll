define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  call void @helper()
  ret void
}
define void @helper() {
  call void @__nvvm_launch_bounds(i32 64, i32 0)
  ret void
}

declare void @__nvvm_launch_bounds(i32, i32)
