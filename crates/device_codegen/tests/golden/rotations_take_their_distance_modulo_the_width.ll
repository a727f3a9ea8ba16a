; libNVVM's own rotation of 64 bits does not; that of 32 does.

define void @kernel(ptr %out, i64 %wide, i32 %word, i64 %by) section ".nvvm.kernel" {
start:
  %left = call i64 @llvm.fshl.i64(i64 %wide, i64 %wide, i64 %by)
  store i64 %left, ptr %out, align 8
  %right = call i64 @llvm.fshr.i64(i64 %wide, i64 %wide, i64 %by)
  store i64 %right, ptr %out, align 8
  %kept = call i32 @llvm.fshl.i32(i32 %word, i32 %word, i32 %word)
  store i32 %kept, ptr %out, align 4
  ret void
}

declare i64 @llvm.fshl.i64(i64, i64, i64)

declare i64 @llvm.fshr.i64(i64, i64, i64)

declare i32 @llvm.fshl.i32(i32, i32, i32)

; Funnel shifts: of two numbers in a row.
define void @funnels(ptr %out, i8 %a8, i8 %b8, i16 %a16, i16 %b16, i32 %a32, i32 %b32, i64 %a64, i64 %b64, i128 %a128, i128 %b128) section ".nvvm.kernel" {
start:
  %l8 = call i8 @llvm.fshl.i8(i8 %a8, i8 %b8, i8 %b8)
  store i8 %l8, ptr %out, align 1
  %r8 = call i8 @llvm.fshr.i8(i8 %a8, i8 %b8, i8 3)
  store i8 %r8, ptr %out, align 1
  %l16 = call i16 @llvm.fshl.i16(i16 %a16, i16 %b16, i16 %b16)
  store i16 %l16, ptr %out, align 2
  %r16 = call i16 @llvm.fshr.i16(i16 %a16, i16 %b16, i16 3)
  store i16 %r16, ptr %out, align 2
  %l32 = call i32 @llvm.fshl.i32(i32 %a32, i32 %b32, i32 %b32)
  store i32 %l32, ptr %out, align 4
  %r32 = call i32 @llvm.fshr.i32(i32 %a32, i32 %b32, i32 3)
  store i32 %r32, ptr %out, align 4
  %l64 = call i64 @llvm.fshl.i64(i64 %a64, i64 %b64, i64 %b64)
  store i64 %l64, ptr %out, align 8
  %r64 = call i64 @llvm.fshr.i64(i64 %a64, i64 %b64, i64 3)
  store i64 %r64, ptr %out, align 8
  %l128 = call i128 @llvm.fshl.i128(i128 %a128, i128 %b128, i128 %b128)
  store i128 %l128, ptr %out, align 8
  %r128 = call i128 @llvm.fshr.i128(i128 %a128, i128 %b128, i128 3)
  store i128 %r128, ptr %out, align 8
  ret void
}

declare i8 @llvm.fshl.i8(i8, i8, i8)

declare i8 @llvm.fshr.i8(i8, i8, i8)

declare i16 @llvm.fshl.i16(i16, i16, i16)

declare i16 @llvm.fshr.i16(i16, i16, i16)

declare i32 @llvm.fshr.i32(i32, i32, i32)

declare i128 @llvm.fshl.i128(i128, i128, i128)

declare i128 @llvm.fshr.i128(i128, i128, i128)
