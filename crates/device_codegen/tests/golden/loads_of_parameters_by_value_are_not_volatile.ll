; The last load is of other memory.

define void @kernel(ptr %table, ptr %out, i64 %i) section ".nvvm.kernel" {
start:
  call void @__nvvm_grid_constant(ptr %table, i64 64, i64 4)
  %first = load volatile i32, ptr %table, align 4
  br label %next

last:
  %word = load volatile i32, ptr %place, align 4
  %other = load volatile i32, ptr %out, align 4
  %sum = add i32 %first, %word
  %all = add i32 %sum, %other
  store i32 %all, ptr %out, align 4
  ret void

next:
  %place = getelementptr inbounds i32, ptr %table, i64 %i
  br label %last
}

declare void @__nvvm_grid_constant(ptr, i64, i64)
