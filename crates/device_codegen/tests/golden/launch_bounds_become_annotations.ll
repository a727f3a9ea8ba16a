; The second kernel has none.

define void @bounded() section ".nvvm.kernel" {
start:
  call void @__nvvm_launch_bounds(i32 noundef 256, i32 noundef 2)
  ret void
}

define void @unbounded() section ".nvvm.kernel" {
start:
  call void @__nvvm_launch_bounds(i32 noundef 0, i32 noundef 0)
  ret void
}

declare void @__nvvm_launch_bounds(i32 noundef, i32 noundef) unnamed_addr
