; `saturating_add`, `saturating_sub`, with and without sign.

define void @kernel(ptr %out, i32 %a, i32 %b, i8 %c, i8 %d) section ".nvvm.kernel" {
start:
  %sum = call i32 @llvm.sadd.sat.i32(i32 %a, i32 %b)
  store i32 %sum, ptr %out, align 4
  %difference = call i32 @llvm.ssub.sat.i32(i32 %a, i32 %b)
  store i32 %difference, ptr %out, align 4
  %unsigned_sum = call i8 @llvm.uadd.sat.i8(i8 %c, i8 %d)
  store i8 %unsigned_sum, ptr %out, align 1
  %unsigned_difference = call i8 @llvm.usub.sat.i8(i8 %c, i8 %d)
  store i8 %unsigned_difference, ptr %out, align 1
  ret void
}

declare i32 @llvm.sadd.sat.i32(i32, i32)

declare i32 @llvm.ssub.sat.i32(i32, i32)

declare i8 @llvm.uadd.sat.i8(i8, i8)

declare i8 @llvm.usub.sat.i8(i8, i8)
