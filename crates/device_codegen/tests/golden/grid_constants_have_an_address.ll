; Of two of them the annotation has the positions, counted from 1. The other one may be copied.

define void @kernel(ptr noundef %a, ptr noundef %b, ptr noundef %c) section ".nvvm.kernel" {
start:
  call void @__nvvm_grid_constant(ptr noundef %a, i64 noundef 128, i64 noundef 64)
  call void @__nvvm_by_value(ptr noundef %b, i64 noundef 16, i64 noundef 16)
  call void @__nvvm_grid_constant(ptr noundef %c, i64 noundef 4, i64 noundef 4)
  %bits = load i128, ptr %b, align 16
  %low = trunc i128 %bits to i64
  %first = ptrtoint ptr %a to i64
  %third = ptrtoint ptr %c to i64
  %sum = add i64 %first, %low
  call void asm sideeffect "{ .reg .u32 word; ld.u32 word, [$0]; ld.u32 word, [$1]; }", "r,r"(i64 %sum, i64 %third)
  ret void
}

declare void @__nvvm_by_value(ptr noundef, i64 noundef, i64 noundef) unnamed_addr
declare void @__nvvm_grid_constant(ptr noundef, i64 noundef, i64 noundef) unnamed_addr
