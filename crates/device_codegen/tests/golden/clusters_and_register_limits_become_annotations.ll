; libNVVM drops clusters for an architecture that has none.

define void @clustered() section ".nvvm.kernel" {
start:
  call void @__nvvm_cluster_dim(i32 noundef 4, i32 noundef 2, i32 noundef 1)
  call void @__nvvm_launch_bounds(i32 noundef 256, i32 noundef 0)
  ret void
}

define void @limited() section ".nvvm.kernel" {
start:
  call void @__nvvm_max_registers(i32 noundef 128)
  ret void
}

declare void @__nvvm_cluster_dim(i32 noundef, i32 noundef, i32 noundef) unnamed_addr
declare void @__nvvm_launch_bounds(i32 noundef, i32 noundef) unnamed_addr
declare void @__nvvm_max_registers(i32 noundef) unnamed_addr
