; What rustc makes of `half::bf16::from_f32`: of a float, of bits that are loaded, and of two numbers
; in branches that end in one phi.

define void @of_a_float(float %x, ptr %out) section ".nvvm.kernel" {
start:
  %bits = bitcast float %x to i32
  %magnitude = call float @llvm.fabs.f32(float %x)
  %magnitude.bits = bitcast float %magnitude to i32
  %is.nan = icmp samesign ugt i32 %magnitude.bits, 2139095040
  br i1 %is.nan, label %nan, label %number
number:
  %round.bit = and i32 %bits, 32768
  %down = icmp eq i32 %round.bit, 0
  %rest = and i32 %bits, 98303
  %even = icmp eq i32 %rest, 0
  %or.cond = or i1 %down, %even
  br i1 %or.cond, label %same, label %up
nan:
  %nan.high = lshr i32 %bits, 16
  %nan.narrow = trunc nuw i32 %nan.high to i16
  %quiet = or i16 %nan.narrow, 64
  br label %end
same:
  %same.high = lshr i32 %bits, 16
  %same.narrow = trunc nuw i32 %same.high to i16
  br label %end
up:
  %up.high = lshr i32 %bits, 16
  %up.narrow = trunc nuw i32 %up.high to i16
  %next = add i16 %up.narrow, 1
  br label %end
end:
  %rounded = phi i16 [ %quiet, %nan ], [ %same.narrow, %same ], [ %next, %up ]
  store i16 %rounded, ptr %out, align 2
  ret void
}

define void @of_bits(ptr %in, ptr %out) section ".nvvm.kernel" {
start:
  %bits = load i32, ptr %in, align 4
  %magnitude = and i32 %bits, 2147483647
  %is.nan = icmp samesign ugt i32 %magnitude, 2139095040
  br i1 %is.nan, label %nan, label %number
number:
  %round.bit = and i32 %bits, 32768
  %down = icmp eq i32 %round.bit, 0
  %rest = and i32 %bits, 98303
  %even = icmp eq i32 %rest, 0
  %or.cond = or i1 %down, %even
  br i1 %or.cond, label %same, label %up
nan:
  %nan.high = lshr i32 %bits, 16
  %nan.narrow = trunc nuw i32 %nan.high to i16
  %quiet = or i16 %nan.narrow, 64
  br label %end
same:
  %same.high = lshr i32 %bits, 16
  %same.narrow = trunc nuw i32 %same.high to i16
  br label %end
up:
  %up.high = lshr i32 %bits, 16
  %up.narrow = trunc nuw i32 %up.high to i16
  %next = add i16 %up.narrow, 1
  br label %end
end:
  %rounded = phi i16 [ %quiet, %nan ], [ %same.narrow, %same ], [ %next, %up ]
  store i16 %rounded, ptr %out, align 2
  ret void
}

define void @of_either(i1 %first, i32 %a, ptr %out) section ".nvvm.kernel" {
start:
  br i1 %first, label %one, label %end
one:
  %magnitude = and i32 %a, 2147483647
  %is.nan = icmp ugt i32 %magnitude, 2139095040
  br i1 %is.nan, label %nan, label %number
number:
  %round.bit = and i32 %a, 32768
  %down = icmp eq i32 %round.bit, 0
  %rest = and i32 %a, 98303
  %even = icmp eq i32 %rest, 0
  %or.cond = or i1 %down, %even
  br i1 %or.cond, label %same, label %up
nan:
  %nan.high = lshr i32 %a, 16
  %nan.narrow = trunc i32 %nan.high to i16
  %quiet = or i16 %nan.narrow, 64
  br label %end
same:
  %same.high = lshr i32 %a, 16
  %same.narrow = trunc i32 %same.high to i16
  br label %end
up:
  %up.high = lshr i32 %a, 16
  %up.narrow = trunc i32 %up.high to i16
  %next = add i16 %up.narrow, 1
  br label %end
end:
  %rounded = phi i16 [ 7, %start ], [ %next, %up ], [ %quiet, %nan ], [ %same.narrow, %same ]
  %which = phi i16 [ 1, %start ], [ 2, %up ], [ 2, %nan ], [ 2, %same ]
  store i16 %rounded, ptr %out, align 2
  store i16 %which, ptr %out, align 2
  ret void
}

; A NaN becomes infinite, so this is no rounding to bf16.
define void @of_something_else(i32 %bits, ptr %out) section ".nvvm.kernel" {
start:
  %magnitude = and i32 %bits, 2147483647
  %is.nan = icmp ugt i32 %magnitude, 2139095040
  br i1 %is.nan, label %nan, label %number
number:
  %round.bit = and i32 %bits, 32768
  %down = icmp eq i32 %round.bit, 0
  %rest = and i32 %bits, 98303
  %even = icmp eq i32 %rest, 0
  %or.cond = or i1 %down, %even
  br i1 %or.cond, label %same, label %up
nan:
  br label %end
same:
  %same.high = lshr i32 %bits, 16
  %same.narrow = trunc i32 %same.high to i16
  br label %end
up:
  %up.high = lshr i32 %bits, 16
  %up.narrow = trunc i32 %up.high to i16
  %next = add i16 %up.narrow, 1
  br label %end
end:
  %rounded = phi i16 [ 32640, %nan ], [ %same.narrow, %same ], [ %next, %up ]
  store i16 %rounded, ptr %out, align 2
  ret void
}

declare float @llvm.fabs.f32(float)
