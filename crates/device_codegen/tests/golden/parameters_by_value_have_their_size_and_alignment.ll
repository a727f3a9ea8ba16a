; A pointer in the source, and a value of that many bytes to the launch. The last parameter is as
; rustc has it.

define void @kernel(ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %shape, ptr noalias noundef readonly align 2 dereferenceable(6) %0, float noundef %x, ptr noundef %out) section ".nvvm.kernel" {
start:
  call void @__nvvm_by_value(ptr noundef %shape, i64 noundef 24, i64 noundef 8)
  call void @__nvvm_by_value(ptr noundef %0, i64 noundef 6, i64 noundef 2)
  %rows.address = getelementptr inbounds i8, ptr %shape, i64 16
  %rows = load i64, ptr %rows.address, align 8
  %half = load i16, ptr %0, align 2
  %extended = zext i16 %half to i64
  %sum = add i64 %rows, %extended
  store i64 %sum, ptr %out, align 8
  ret void
}

declare void @__nvvm_by_value(ptr noundef, i64 noundef, i64 noundef) unnamed_addr
